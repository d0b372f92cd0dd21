#pragma once
// Contains the two checkpoints of a diff, the differences between their layouts, the results of
// verifying their checksums so far, the items that could not be read, and the functions that
// decide.

#include <optional>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/diff/unread_items.hpp"
#include "core/seams/diff_seams.hpp"

namespace reprise {

/// Says how the layouts of the two saves differ, judging by launch arguments in the common states.
struct LayoutsApart {
  bool in_any_way = false;
  /// True if any layout argument other than the data-parallel and context-parallel sizes differs.
  bool model_parallel = false;
};

class DiffSides {
 public:
  DiffSides(Checkpoint& one, Checkpoint& other, const DiffSeams& decide)
      : left(one), right(other), seams(decide) {}

  /// Returns how the layouts differ. Reads the common states on the first call. If a common state
  /// is missing or cannot be read or interpreted, the layouts are assumed to be equal.
  LayoutsApart layouts_apart();

  Checkpoint& left;
  Checkpoint& right;
  ChecksumTally left_checksums;
  ChecksumTally right_checksums;
  UnreadItems unread;
  const DiffSeams& seams;

 private:
  std::optional<LayoutsApart> layouts_apart_;
};

}  // namespace reprise
