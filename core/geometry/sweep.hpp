#pragma once
// Answers questions about sets of boxes by sweeping over dimensions. All boxes must be non-empty
// and have equal ndim. The sums of their coordinates must fit in an int64.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/base/random.hpp"
#include "core/geometry/box.hpp"

namespace reprise {

/// Returns the positions in `boxes` of the first two boxes, in sweep order, that share an element.
/// The sweep moves along one dimension. When it reaches the start of a box, it compares that box
/// with the active boxes, which have begun but not yet ended. O(n log n) if few boxes are active at
/// any time, O(n^2) in the worst case.
std::optional<std::pair<std::size_t, std::size_t>> first_overlap(std::span<const Box> boxes);

/// The result of a search for two overlapping boxes. The search gives up after it has compared
/// about `steps_max` pairs of boxes.
struct OverlapSearch {
  std::optional<std::pair<std::size_t, std::size_t>> pair;
  bool finished = true;  ///< false if the search gave up; the result is then unknown
};
OverlapSearch search_overlap(std::span<const Box> boxes, std::uint64_t steps_max);

/// Returns a region of `whole` that no box covers; nothing if there is none. The boxes must lie
/// within `whole` and must not overlap.
///
/// Cuts dimension 0 into slabs, at every face of a box. If the boxes in a slab do not fill it, the
/// slab has a gap. The first such slab is then searched in dimension 1, and so on.
///
///       | A  | A  |        slab 2: B fills 1 of 2        -> dimension 1 of slab 2 alone
///       | A  | A  | B |
///
/// O(n log n) per dimension.
std::optional<Box> first_gap(const Box& whole, std::span<const Box> boxes);

/// Returns the number of elements that are in at least one box. O(n log n) if the boxes do not
/// overlap.
std::uint64_t union_volume(std::span<const Box> boxes);

}  // namespace reprise
