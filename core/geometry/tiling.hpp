#pragma once
// Checks that boxes tile a tensor. The cost is bounded for any boxes. There are three methods:
//
//   grid     If the boxes form a grid and are in order, each dimension is checked separately.
//   sweep    Used if there is no such grid. Quickly finds the overlap or gap for all boxes that
//            jobs produce. Needs more steps if more boxes are active at the same time, so its
//            steps have a budget.
//   corners  Used if the budget is spent. Each corner of a box has the sign +1 or -1, and each
//            corner of the whole tensor has the opposite sign. The boxes tile the tensor if and
//            only if the signs at each corner add up to 0. If p is the first corner with another
//            sum, every element before p is covered once, and element p is covered 1 + sum(p)
//            times.
//
//            +1----------1       A and B are boxes of a whole tensor W. The corners of A and B
//             |    A     |       have the signs +1 and -1, and the corners of W the opposite
//            -1---------+1       signs. Where A and B touch, their signs cancel.

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
/// Like the function above, with a budget that is enough for every regular tiling.
std::optional<TilingFault> tiling_fault(const Box& whole, std::span<const Box> boxes);

/// Upper limit on the number of corners held in memory, at 16 bytes each.
inline constexpr std::size_t kCornersMax = std::size_t{1} << 23U;

}  // namespace reprise
