#pragma once
// Half-open n-d regions of a global tensor.
//
//        offset[1]   offset[1]+extent[1]
//            |           |
//   offset[0]-+-----------+
//            |###########|      an extent of 0 in any dimension: the box is empty
//            +-----------+      no dimensions: one element

#include <optional>
#include <ostream>
#include <vector>

#include "reprise/tensor.hpp"

namespace reprise {

/// [begin, end) along one dimension; empty if end <= begin.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr std::int64_t length() const { return end > begin ? end - begin : 0; }
  friend constexpr bool operator==(Interval, Interval) = default;
};

struct Box {
  Dims offset;
  Dims extent;

  /// Returns the box of a whole tensor of shape `extent`.
  static Box whole(const Dims& extent) { return {Dims::filled(extent.size(), 0), extent}; }

  std::size_t ndim() const { return offset.size(); }
  bool empty() const { return volume(extent) == 0; }
  std::int64_t elements() const { return volume(extent); }
  Interval interval(std::size_t d) const { return {offset[d], offset[d] + extent[d]}; }

  friend bool operator==(const Box&, const Box&) = default;
  /// Orders by offset, then by extent.
  friend bool operator<(const Box& a, const Box& b) {
    return a.offset == b.offset ? a.extent < b.extent : a.offset < b.offset;
  }
  /// Prints "[0:2, 4:6]".
  friend std::ostream& operator<<(std::ostream& out, const Box& box);
};

std::string to_string(const Box& box);

/// Returns the common part, or nothing if it has no elements. Both boxes must have equal ndim.
std::optional<Box> intersect(const Box& a, const Box& b);
/// True if every element of `inner` is in `outer`. An empty box is inside if its offset and end
/// are.
bool contains(const Box& outer, const Box& inner);
/// Returns `box` without `hole` as at most 2 * ndim disjoint boxes; `hole` must lie within `box`.
std::vector<Box> subtract(const Box& box, const Box& hole);
/// Returns `box` in coordinates of a tensor whose first element is at `origin`.
Box relative_to(const Box& box, const Dims& origin);

}  // namespace reprise
