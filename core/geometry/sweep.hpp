#pragma once
// Answers questions about sets of boxes by sweeping over dimensions. All boxes must be non-empty,
// have equal ndim, and have coordinates whose sums fit in an int64.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/base/random.hpp"
#include "core/geometry/box.hpp"

namespace reprise {

/// Returns the positions of the first two boxes in sweep order that share an element. O(n log n)
/// for tilings with few distinct boxes across the sweep, O(n^2) at worst.
std::optional<std::pair<std::size_t, std::size_t>> first_overlap(std::span<const Box> boxes);

/// Same, but gives up after about `steps_max` pairs of boxes.
struct OverlapSearch {
  std::optional<std::pair<std::size_t, std::size_t>> pair;
  bool finished = true;  ///< false: gave up, result unknown
};
OverlapSearch search_overlap(std::span<const Box> boxes, std::uint64_t steps_max);

/// Returns a region of `whole` that no box covers; the boxes must lie within and not overlap.
///
///   cut dimension 0 at every face; the first slab not filled by its boxes has the gap
///
///       | A  | A  |        slab 2: B fills 1 of 2        -> dimension 1 of slab 2 alone
///       | A  | A  | B |
///
/// O(n log n) per dimension.
std::optional<Box> first_gap(const Box& whole, std::span<const Box> boxes);

/// Returns the number of elements in at least one box. O(n log n) if the boxes do not overlap.
std::uint64_t union_volume(std::span<const Box> boxes);

}  // namespace reprise
