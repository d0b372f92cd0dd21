#pragma once
// Finds boxes by region.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/geometry/box_grid.hpp"

namespace reprise {

/// Copies what it needs of the boxes. If they form a grid, finds boxes by binary search in each
/// dimension; otherwise searches the dimension in which they differ most: fast for slabs, with a
/// short scan for others. Boxes must be non-empty and have equal ndim.
class BoxIndex {
 public:
  explicit BoxIndex(std::span<const Box> boxes);

  /// Calls visit(position) once for each box that meets `region`, and possibly for some
  /// others.
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
  std::vector<std::int64_t> begin_;  ///< starts along dim_, sorted; empty: scan all boxes
  std::vector<std::int64_t> reach_;  ///< furthest end along dim_ up to and including each
};

}  // namespace reprise
