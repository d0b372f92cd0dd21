#pragma once
// The two checkpoints of a diff, with facts about each that are found on the way.

#include <optional>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/checksum_tally.hpp"

namespace reprise {

/// Describes how the saving layouts differ, judging by launch arguments in the common states.
struct LayoutsApart {
  bool in_any_way = false;
  bool model_parallel = false;  ///< they differ in more than data-parallel or context-parallel size
};

class DiffSides {
 public:
  DiffSides(Checkpoint& one, Checkpoint& other) : left(one), right(other) {}

  /// Reads the common states on the first call. If one is missing or not understood, the layouts
  /// count as the same.
  LayoutsApart layouts_apart();

  Checkpoint& left;
  Checkpoint& right;
  ChecksumTally left_checksums;
  ChecksumTally right_checksums;

 private:
  std::optional<LayoutsApart> layouts_apart_;
};

}  // namespace reprise
