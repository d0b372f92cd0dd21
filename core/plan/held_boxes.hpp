#pragma once
// Lists the distinct boxes of one tensor and the ranks that hold each box. Owners are chosen from
// these ranks.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/geometry/box.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// Boxes that have the same number of holders and the same number of elements. Owners are chosen
/// for all of them together.
struct BoxBatch {
  std::uint32_t holders = 0;
  std::uint64_t elements = 0;
  std::vector<std::uint32_t> boxes;  ///< positions of the boxes, ascending
};

struct HeldBoxes {
  /// Sorted. Contains an empty box only if there is no other box.
  std::shared_ptr<const std::vector<Box>> boxes;
  std::vector<std::uint32_t> first;  ///< box b is held by holders[first[b]..first[b+1])
  std::vector<GroupRank> holders;    ///< the ranks of each box are ascending
  std::vector<BoxBatch> batches;

  std::span<const GroupRank> holders_of(std::uint32_t box) const {
    return std::span(holders).subspan(first[box], first[box + 1] - first[box]);
  }
};

/// Fills `batches` from the other fields. Throws EXTENT_MISMATCH if the number of elements of a box
/// overflows.
void batch_boxes(HeldBoxes& held);

}  // namespace reprise
