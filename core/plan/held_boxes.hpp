#pragma once
// The distinct boxes of one tensor and the ranks that hold each: the input for choosing owners.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/geometry/box.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// Boxes that get owners one after another: equal numbers of holders and of elements.
struct BoxBatch {
  std::uint32_t holders = 0;
  std::uint64_t elements = 0;
  std::vector<std::uint32_t> boxes;  ///< positions, ascending
};

struct HeldBoxes {
  std::shared_ptr<const std::vector<Box>> boxes;  ///< sorted; an empty box only if it is alone
  std::vector<std::uint32_t> first;  ///< box b is held by holders[first[b]..first[b+1])
  std::vector<GroupRank> holders;    ///< ascending for each box
  std::vector<BoxBatch> batches;

  std::span<const GroupRank> holders_of(std::uint32_t box) const {
    return std::span(holders).subspan(first[box], first[box + 1] - first[box]);
  }
};

/// Fills `batches` from the other fields. Throws EXTENT_MISMATCH if the number of elements of a box
/// overflows.
void batch_boxes(HeldBoxes& held);

}  // namespace reprise
