#pragma once
// Recognizes boxes that form a grid: each dimension has one list of intervals, and there is a box
// for every combination of intervals. Meshes cut tensors into such grids. In a grid, tests for
// tiling and for intersection with a region can treat each dimension separately.
//
//        [0:3]  [3:5]
//   [0:2]  0      1        region [1:3, 2:4] meets [0:2] and [2:4] along dimension 0,
//   [2:4]  2      3        [0:3] and [3:5] along dimension 1: boxes 0, 1, 2, 3

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/geometry/box.hpp"

namespace reprise {

class BoxGrid {
 public:
  /// Returns the grid of the boxes. Returns nothing if they form no grid, are in another order, are
  /// empty, or have overlapping intervals. O(boxes).
  static std::optional<BoxGrid> of(std::span<const Box> boxes);

  /// True if, in each dimension, the intervals cover `whole` from start to end without a gap.
  bool tiles(const Box& whole) const;

  /// Calls visit(position of the box, number of common elements) for each box that meets `region`,
  /// in order. `region` must have as many dimensions as the boxes.
  template <class Visit>
  void meet(const Box& region, const Visit& visit) const {
    std::array<Range, kMaxNdim> ranges;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      ranges[d] = range_of(d, region.interval(d));
      if (ranges[d].first == ranges[d].last) return;
    }
    visit_range(0, ranges, region, 0, 1, visit);
  }

 private:
  struct Range {
    std::size_t first = 0;
    std::size_t last = 0;
  };

  Range range_of(std::size_t dim, Interval wanted) const;

  template <class Visit>
  void visit_range(std::size_t dim, const std::array<Range, kMaxNdim>& ranges, const Box& region,
                   std::size_t box, std::uint64_t elements, const Visit& visit) const {
    if (dim == dims_.size()) return visit(static_cast<std::uint32_t>(box), elements);
    const Interval wanted = region.interval(dim);
    for (std::size_t i = ranges[dim].first; i < ranges[dim].last; ++i) {
      const Interval& own = dims_[dim][i];
      const std::int64_t begin = own.begin > wanted.begin ? own.begin : wanted.begin;
      const std::int64_t end = own.end < wanted.end ? own.end : wanted.end;
      visit_range(dim + 1, ranges, region, box * dims_[dim].size() + i,
                  elements * static_cast<std::uint64_t>(end - begin), visit);
    }
  }

  std::vector<std::vector<Interval>> dims_;
};

}  // namespace reprise
