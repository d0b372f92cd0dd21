#include "core/geometry/box_index.hpp"

#include <algorithm>
#include <numeric>

namespace reprise {
namespace {

/// Returns the dimension in which the boxes have the most distinct starts.
std::size_t busiest_dim(std::span<const Box> boxes, std::size_t ndim) {
  std::size_t best = 0;
  std::size_t most = 0;
  std::vector<std::int64_t> begins;
  for (std::size_t d = 0; d < ndim; ++d) {
    begins.clear();
    for (const Box& box : boxes) begins.push_back(box.offset[d]);
    std::sort(begins.begin(), begins.end());
    const auto distinct =
        static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
    if (distinct > most) {
      most = distinct;
      best = d;
    }
  }
  return best;
}

}  // namespace

BoxIndex::BoxIndex(std::span<const Box> boxes) : order_(boxes.size()) {
  std::iota(order_.begin(), order_.end(), 0U);
  constexpr std::size_t kScanned = 8;  // a scan of so few boxes is faster than a sort
  const std::size_t ndim = boxes.empty() ? 0 : boxes.front().ndim();
  if (ndim == 0 || boxes.size() <= kScanned) return;
  grid_ = BoxGrid::of(boxes);
  if (grid_) return;
  dim_ = busiest_dim(boxes, ndim);
  const auto begin_of = [&](std::uint32_t at) { return boxes[at].offset[dim_]; };
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return begin_of(a) < begin_of(b); });
  std::int64_t reach = 0;
  for (const std::uint32_t at : order_) {
    begin_.push_back(begin_of(at));
    reach = std::max(reach, boxes[at].interval(dim_).end);
    reach_.push_back(reach);
  }
}

std::size_t BoxIndex::first_reaching(const Box& region) const {
  if (reach_.empty()) return 0;
  const auto first = std::upper_bound(reach_.begin(), reach_.end(), region.offset[dim_]);
  return static_cast<std::size_t>(first - reach_.begin());
}

bool BoxIndex::begins_after(std::size_t i, const Box& region) const {
  return !begin_.empty() && begin_[i] >= region.interval(dim_).end;
}

}  // namespace reprise
