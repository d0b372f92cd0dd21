#pragma once
// Finds the boxes that meet a region.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/geometry/box_grid.hpp"

namespace reprise {

/// An index of boxes, which must be non-empty and have equal ndim. The boxes need not outlive the
/// index. If the boxes form a grid, the index finds boxes by binary search in each dimension.
/// Otherwise it searches only the dimension in which the boxes have the most distinct starts. For
/// slabs, this search is exact and fast. For other boxes, it may also visit boxes that do not meet
/// the region.
class BoxIndex {
 public:
  explicit BoxIndex(std::span<const Box> boxes);

  /// Calls visit(position) once for each box that meets `region`, and possibly for some boxes that
  /// do not meet it.
  template <class Visit>
  void meet(const Box& region, const Visit& visit) const {
    if (grid_) return grid_->meet(region, [&](std::uint32_t at, std::uint64_t) { visit(at); });
    for (std::size_t i = first_reaching(region); i < order_.size(); ++i) {
      if (begins_after(i, region)) break;
      visit(order_[i]);
    }
  }

 private:
  std::size_t first_reaching(const Box& region) const;
  bool begins_after(std::size_t i, const Box& region) const;

  std::optional<BoxGrid> grid_;
  std::vector<std::uint32_t> order_;  ///< positions, sorted by the boxes' start along dim_
  std::size_t dim_ = 0;
  std::vector<std::int64_t> begin_;  ///< starts along dim_, sorted; if empty, all boxes are scanned
  /// reach_[i] is the largest end along dim_ of the boxes order_[0] to order_[i].
  std::vector<std::int64_t> reach_;
};

}  // namespace reprise
