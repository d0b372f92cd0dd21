#pragma once
// Checks that boxes tile a tensor, at a bounded cost for any boxes.
//
//   the grid     if the boxes are a product of intervals in its order, checks each dimension
//                separately
//   the sweep    finds the overlap or gap quickly for all boxes that jobs produce; its steps grow
//                with the number of boxes active at the same time, so it has a budget
//   the corners  used if the budget is spent. Each box counts +1 or -1 at its corners, the whole
//                tensor the opposite; the boxes tile it if and only if all counts cancel. The
//                first remaining corner p is a witness: every element before p is covered once,
//                p itself 1 + count(p) times.
//
//            +1----------1        boxes A, B of a whole tensor W: at each corner +-1 of the box
//             |    A     |        and -+1 of W; where A and B touch, their counts cancel
//            -1---------+1

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/geometry/box.hpp"

namespace reprise {

/// Exactly one of the two is set.
struct TilingFault {
  std::optional<std::pair<std::size_t, std::size_t>> overlap;  ///< positions of two boxes
  std::optional<Box> gap;                                      ///< a region that no box covers
};

/// Returns nothing if every element of `whole` is in exactly one box. The boxes must be non-empty
/// and lie within. `sweep_steps` is the sweep's budget. O(n log n), or O(n * 2^r * log n) for boxes
/// made to exhaust it, where r is the number of dimensions that are cut. Throws LIMIT if there are
/// more corners than kCornersMax, which takes many boxes cut in five or more dimensions.
std::optional<TilingFault> tiling_fault(const Box& whole, std::span<const Box> boxes,
                                        std::uint64_t sweep_steps);
/// Same, with a budget that every regular tiling stays within.
std::optional<TilingFault> tiling_fault(const Box& whole, std::span<const Box> boxes);

/// Limit on corners held in memory, of 16 bytes each.
inline constexpr std::size_t kCornersMax = std::size_t{1} << 23U;

}  // namespace reprise
