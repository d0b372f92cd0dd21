#pragma once
// Questions about sets of boxes, answered by sweeping over dimensions. All boxes are non-empty,
// have the same ndim and coordinates whose sums fit an int64.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/base/random.hpp"
#include "core/geometry/box.hpp"

namespace reprise {

/// Positions of two boxes that share an element; the first in the order of the sweep.
/// O(n log n) for tilings with few distinct boxes across the sweep, never worse than O(n^2).
std::optional<std::pair<std::size_t, std::size_t>> first_overlap(std::span<const Box> boxes);

/// The same, given up after about `steps_max` pairs of boxes.
struct OverlapSearch {
  std::optional<std::pair<std::size_t, std::size_t>> pair;
  bool finished = true;  ///< false: given up, and nothing is known
};
OverlapSearch search_overlap(std::span<const Box> boxes, std::uint64_t steps_max);

/// A region of `whole` that is in none of the boxes, which lie within it and do not overlap.
///
///   cut dimension 0 at every face; the first slab whose boxes do not fill it holds the gap
///
///       | A  | A  |        slab 2: B fills 1 of 2        -> dimension 1 of slab 2 alone
///       | A  | A  | B |
///
/// O(n log n) for each dimension.
std::optional<Box> first_gap(const Box& whole, std::span<const Box> boxes);

/// Elements in at least one of the boxes. O(n log n) if they do not overlap.
std::uint64_t union_volume(std::span<const Box> boxes);

}  // namespace reprise
