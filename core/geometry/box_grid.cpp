#include "core/geometry/box_grid.hpp"

#include <algorithm>

namespace reprise {
namespace {

/// True if the boxes have the same offsets along the first `dims` dimensions.
bool same_before(const Box& a, const Box& b, std::size_t dims) {
  return std::equal(a.offset.begin(), a.offset.begin() + dims, b.offset.begin());
}

bool ascend(std::span<const Interval> intervals) {
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].length() == 0) return false;
    if (i > 0 && intervals[i].begin < intervals[i - 1].end) return false;
  }
  return true;
}

}  // namespace

std::optional<BoxGrid> BoxGrid::of(std::span<const Box> boxes) {
  if (boxes.empty()) return std::nullopt;
  const std::size_t ndim = boxes.front().ndim();
  BoxGrid grid;
  grid.dims_.resize(ndim);
  // Handles the dimensions from last to first. The first boxes differ only in the last dimension,
  // so they give its list of intervals. In each earlier dimension, every `step`-th box gives the
  // next interval.
  std::size_t step = 1;
  for (std::size_t d = ndim; d-- > 0;) {
    std::vector<Interval>& intervals = grid.dims_[d];
    for (std::size_t i = 0; i < boxes.size(); i += step) {
      if (boxes[i].ndim() != ndim || !same_before(boxes[i], boxes.front(), d)) break;
      intervals.push_back(boxes[i].interval(d));
    }
    if (!ascend(intervals)) return std::nullopt;
    step *= intervals.size();
  }
  if (step != boxes.size()) return std::nullopt;
  std::array<std::size_t, kMaxNdim> at{};
  for (const Box& box : boxes) {
    if (box.ndim() != ndim || box.extent.size() != ndim) return std::nullopt;
    for (std::size_t d = 0; d < ndim; ++d) {
      if (box.interval(d) != grid.dims_[d][at[d]]) return std::nullopt;
    }
    for (std::size_t d = ndim; d-- > 0;) {
      if (++at[d] < grid.dims_[d].size()) break;
      at[d] = 0;
    }
  }
  return grid;
}

bool BoxGrid::tiles(const Box& whole) const {
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    std::int64_t reached = whole.interval(d).begin;
    for (const Interval interval : dims_[d]) {
      if (interval.begin != reached) return false;
      reached = interval.end;
    }
    if (reached != whole.interval(d).end) return false;
  }
  return true;
}

BoxGrid::Range BoxGrid::range_of(std::size_t dim, Interval wanted) const {
  const auto& intervals = dims_[dim];
  const auto first =
      std::partition_point(intervals.begin(), intervals.end(),
                           [&](const Interval& own) { return own.end <= wanted.begin; });
  const auto last = std::partition_point(
      first, intervals.end(), [&](const Interval& own) { return own.begin < wanted.end; });
  return {static_cast<std::size_t>(first - intervals.begin()),
          static_cast<std::size_t>(last - intervals.begin())};
}

}  // namespace reprise
