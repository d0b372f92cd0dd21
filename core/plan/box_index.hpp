#pragma once
// Boxes found by region.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/box_grid.hpp"

namespace reprise {

/// Keeps what it needs of the boxes. Where they form a grid a region's boxes are found by binary
/// search in each dimension; elsewhere in the dimension in which boxes differ most: quickly where
/// they are slabs, by a short scan otherwise. Boxes have elements, and all have one ndim.
class BoxIndex {
 public:
  explicit BoxIndex(std::span<const Box> boxes);

  /// Calls visit(position) for each box that meets `region`, and perhaps for some that do not; once
  /// for each.
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
  std::vector<std::uint32_t> order_;  ///< positions, by where the boxes begin along dim_
  std::size_t dim_ = 0;
  std::vector<std::int64_t> begin_;  ///< along dim_, in that order; empty: all are looked at
  std::vector<std::int64_t> reach_;  ///< furthest end along dim_ up to and with each
};

}  // namespace reprise
