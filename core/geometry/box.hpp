#pragma once
// Defines boxes: regions of a global tensor, given by offset and extent in each dimension.
//
//        offset[1]   offset[1]+extent[1]
//            |           |
//   offset[0]-+-----------+
//            |###########|      with an extent of 0 in any dimension, the box is empty;
//            +-----------+      with no dimensions, it is one element

#include <optional>
#include <ostream>
#include <vector>

#include "reprise/tensor.hpp"

namespace reprise {

/// A half-open interval [begin, end) along one dimension; empty if end <= begin.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr std::int64_t length() const { return end > begin ? end - begin : 0; }
  friend constexpr bool operator==(Interval, Interval) = default;
};

struct Box {
  Dims offset;
  Dims extent;

  /// Returns the box that covers a whole tensor of shape `extent`.
  static Box whole(const Dims& extent) { return {Dims::filled(extent.size(), 0), extent}; }

  std::size_t ndim() const { return offset.size(); }
  bool empty() const { return volume(extent) == 0; }
  std::int64_t elements() const { return volume(extent); }
  Interval interval(std::size_t d) const { return {offset[d], offset[d] + extent[d]}; }

  friend bool operator==(const Box&, const Box&) = default;
  /// Compares boxes by offset, and boxes of equal offset by extent.
  friend bool operator<(const Box& a, const Box& b) {
    return a.offset == b.offset ? a.extent < b.extent : a.offset < b.offset;
  }
  /// Prints "[0:2, 4:6]".
  friend std::ostream& operator<<(std::ostream& out, const Box& box);
};

std::string to_string(const Box& box);

/// Returns the common part of two boxes of equal ndim; nothing if that part has no elements.
std::optional<Box> intersect(const Box& a, const Box& b);
/// True if every element of `inner` is in `outer`. An empty box is contained if its offset and its
/// end are within `outer`.
bool contains(const Box& outer, const Box& inner);
/// Returns the part of `box` outside `hole`, as at most 2 * ndim disjoint boxes. `hole` must be
/// within `box`.
std::vector<Box> subtract(const Box& box, const Box& hole);
/// Returns `box` in the coordinates of a tensor whose first element is at `origin`.
Box relative_to(const Box& box, const Dims& origin);

}  // namespace reprise
