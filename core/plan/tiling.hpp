#pragma once
// Whether boxes tile a tensor, at a bounded cost whatever the boxes are.
//
//   the grid     if the boxes are a product of intervals in its order, each dimension is looked at
//                alone
//   the sweep    finds the overlap or the gap at once for all boxes that jobs make; it takes as
//                many steps as boxes are alive at the same time, so it is given a budget
//   the corners  if that is spent. Each box counts +1 or -1 at its corners, the whole tensor the
//                opposite; the boxes tile it if and only if all counts cancel. The first corner p
//                that is left is a witness: every element before p is covered once, and p itself
//                1 + count(p) times.
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

/// Exactly one of the two is there.
struct TilingFault {
  std::optional<std::pair<std::size_t, std::size_t>> overlap;  ///< positions of two boxes
  std::optional<Box> gap;                                      ///< a region in none of the boxes
};

/// Nothing if every element of `whole` is in exactly one box. The boxes are non-empty and lie
/// within. `sweep_steps` is the sweep's budget; without boxes made to exhaust it O(n log n), with
/// them O(n * 2^r * log n), r the number of dimensions that are cut at all. LIMIT if those corners
/// are more than kCornersMax, which takes many boxes that are cut in five dimensions or more.
std::optional<TilingFault> tiling_fault(const Box& whole, std::span<const Box> boxes,
                                        std::uint64_t sweep_steps);
/// With a budget that no regular tiling needs.
std::optional<TilingFault> tiling_fault(const Box& whole, std::span<const Box> boxes);

/// Corners that are held at once, of 16 bytes each.
inline constexpr std::size_t kCornersMax = std::size_t{1} << 23U;

}  // namespace reprise
