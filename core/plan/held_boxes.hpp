#pragma once
// The distinct boxes of one tensor, and who holds each: what owners are chosen from.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/geometry/box.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// Boxes that come to their owners one after another: as many holders each, as many elements each.
struct BoxBatch {
  std::uint32_t holders = 0;
  std::uint64_t elements = 0;
  std::vector<std::uint32_t> boxes;  ///< positions, ascending
};

struct HeldBoxes {
  std::shared_ptr<const std::vector<Box>> boxes;  ///< sorted; empty only if it is alone
  std::vector<std::uint32_t> first;  ///< box b is held by holders[first[b]..first[b+1])
  std::vector<GroupRank> holders;    ///< of one box: ascending
  std::vector<BoxBatch> batches;

  std::span<const GroupRank> holders_of(std::uint32_t box) const {
    return std::span(holders).subspan(first[box], first[box + 1] - first[box]);
  }
};

/// Fills `batches` from the rest. Throws EXTENT_MISMATCH where a box has more elements than can be
/// counted.
void batch_boxes(HeldBoxes& held);

}  // namespace reprise
