#pragma once
// Checks that boxes tile a tensor. The cost is bounded for any boxes.
//
//   the grid     comes first. If the boxes form a grid and are in order, it checks each dimension
//                separately.
//   the sweep    comes second. It quickly finds the overlap or gap for all boxes that jobs produce.
//                It needs more steps if more boxes are active at the same time, so its steps have a
//                budget.
//   the corners  are used if the budget is spent. Each box counts +1 or -1 at its corners, and the
//                whole tensor counts the opposite; the boxes tile the tensor if and only if all
//                counts cancel. If p is the first corner with a sum other than 0, every element
//                before p is covered once, and element p is covered 1 + sum(p) times.
//
//            +1----------1       A and B are boxes of a whole tensor W. Each corner of A and B
//             |    A     |       counts +1 or -1, and each corner of W the opposite. Where A and B
//            -1---------+1       touch, their counts cancel.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/geometry/box.hpp"

namespace reprise {

/// The reason why boxes do not tile a tensor. Exactly one member is set.
struct TilingFault {
  /// Positions of two boxes that overlap.
  std::optional<std::pair<std::size_t, std::size_t>> overlap;
  std::optional<Box> gap;  ///< a region that no box covers
};

/// Returns nothing if every element of `whole` is in exactly one box. The boxes must be non-empty
/// and lie within `whole`. `sweep_steps` is the sweep's budget. O(n log n); if the budget is spent,
/// O(n * 2^r * log n), where r is the number of dimensions that are cut. Throws LIMIT if there are
/// more corners than kCornersMax. This is only possible with many boxes that are cut in five or
/// more dimensions.
std::optional<TilingFault> tiling_fault(const Box& whole, std::span<const Box> boxes,
                                        std::uint64_t sweep_steps);
/// Checks with a budget that is enough for every regular tiling.
std::optional<TilingFault> tiling_fault(const Box& whole, std::span<const Box> boxes);

/// Upper limit on the number of corners held in memory, at 16 bytes each.
inline constexpr std::size_t kCornersMax = std::size_t{1} << 23U;

}  // namespace reprise
