#pragma once
// The two checkpoints of a diff, with what is found out about each on the way.

#include <optional>

#include "core/engine/checkpoint.hpp"
#include "core/engine/checksum_tally.hpp"

namespace reprise {

/// How the layouts differ that saved the two, by the launch arguments in their common states.
struct LayoutsApart {
  bool in_any_way = false;
  bool model_parallel = false;  ///< in more than the number of data-parallel or context ranks
};

class DiffSides {
 public:
  DiffSides(Checkpoint& one, Checkpoint& other) : left(one), right(other) {}

  /// Reads the common states the first time. Where one has none, or none that is understood, the
  /// layouts count as the same.
  LayoutsApart layouts_apart();

  Checkpoint& left;
  Checkpoint& right;
  ChecksumTally left_checksums;
  ChecksumTally right_checksums;

 private:
  std::optional<LayoutsApart> layouts_apart_;
};

}  // namespace reprise
