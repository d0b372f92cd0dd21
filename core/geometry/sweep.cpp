#include "core/geometry/sweep.hpp"

#include <algorithm>
#include <compare>
#include <limits>
#include <map>
#include <memory_resource>
#include <vector>

namespace reprise {
namespace {

std::size_t distinct_begins(std::span<const Box> boxes, std::size_t dim) {
  std::vector<std::int64_t> begins;
  begins.reserve(boxes.size());
  for (const Box& box : boxes) {
    if (begins.empty() || begins.back() != box.offset[dim]) begins.push_back(box.offset[dim]);
  }
  if (!std::is_sorted(begins.begin(), begins.end())) std::sort(begins.begin(), begins.end());
  return static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
}

/// The sweep moves along dimension `sweep`. The active boxes are sorted along dimension `order`.
struct SweepDims {
  std::size_t sweep = 0;
  std::size_t order = 0;
};

/// Chooses the two dimensions in which the boxes have the most distinct starts.
SweepDims sweep_dims(std::span<const Box> boxes) {
  SweepDims best;
  std::size_t most = 0;
  std::size_t second = 0;
  for (std::size_t d = 0; d < boxes[0].ndim(); ++d) {
    const std::size_t count = distinct_begins(boxes, d);
    if (count > most) {
      best.order = best.sweep;
      second = most;
      best.sweep = d;
      most = count;
    } else if (count > second) {
      best.order = d;
      second = count;
    }
  }
  return best;
}

/// A box's position in its list, and the face by which it is ordered.
struct Face {
  std::int64_t at;
  std::size_t box;

  friend auto operator<=>(const Face&, const Face&) = default;
};

/// Returns the begins of the boxes in one dimension, or their ends, in order.
std::vector<Face> faces_of(std::span<const Box> boxes, std::size_t dim, bool ends) {
  std::vector<Face> faces;
  faces.reserve(boxes.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Interval span = boxes[i].interval(dim);
    faces.push_back({ends ? span.end : span.begin, i});
  }
  if (!std::is_sorted(faces.begin(), faces.end())) std::sort(faces.begin(), faces.end());
  return faces;
}

}  // namespace

std::optional<std::pair<std::size_t, std::size_t>> first_overlap(std::span<const Box> boxes) {
  return search_overlap(boxes, std::numeric_limits<std::uint64_t>::max()).pair;
}

OverlapSearch search_overlap(std::span<const Box> boxes, std::uint64_t steps_max) {
  if (boxes.size() < 2) return {};
  if (boxes[0].ndim() == 0) return {.pair = std::pair{std::size_t{0}, std::size_t{1}}};
  const auto [sweep, order] = sweep_dims(boxes);
  const auto begins = faces_of(boxes, sweep, false);
  const auto ends = faces_of(boxes, sweep, true);
  std::int64_t longest = 0;
  for (const Box& box : boxes) longest = std::max(longest, box.extent[order]);
  std::pmr::unsynchronized_pool_resource nodes;
  std::pmr::multimap<std::int64_t, std::size_t> active(&nodes);
  std::vector<decltype(active)::iterator> place(boxes.size());
  std::size_t ended = 0;
  for (const Face& begin : begins) {
    const Box& box = boxes[begin.box];
    for (; ends[ended].at <= begin.at; ++ended) active.erase(place[ends[ended].box]);
    const Interval span = box.interval(order);
    for (auto at = active.upper_bound(span.begin - longest);
         at != active.end() && at->first < span.end; ++at) {
      if (intersect(boxes[at->second], box)) {
        return {.pair = std::minmax(at->second, begin.box)};
      }
      if (steps_max-- == 0) return {.pair = std::nullopt, .finished = false};
    }
    place[begin.box] = active.emplace(span.begin, begin.box);
  }
  return {};
}

namespace {

/// Finds a region that no box covers. The recursion starts at dimension 0; each level handles the
/// next dimension, and considers only the boxes that cover the slab found so far.
class GapFinder {
 public:
  explicit GapFinder(const Box& whole) : whole_(whole), gap_(whole) {}

  /// True if there is a gap. gap() then returns it.
  bool find(const std::vector<const Box*>& boxes, std::size_t dim) {
    if (dim == whole_.ndim()) return boxes.empty();
    std::vector<Event> events;
    events.reserve(2 * boxes.size());
    for (const Box* box : boxes) {
      const Interval span = box->interval(dim);
      const Wide area = tail_volume(*box, dim + 1);
      events.push_back({span.begin, area, false});
      events.push_back({span.end, area, true});
    }
    std::sort(events.begin(), events.end(), [](auto& a, auto& b) { return a.at < b.at; });
    const Interval slab = first_thin_slab(events, dim);
    if (slab.length() == 0) return false;
    gap_.offset[dim] = slab.begin;
    gap_.extent[dim] = slab.length();
    std::vector<const Box*> alive;
    for (const Box* box : boxes) {
      const Interval span = box->interval(dim);
      if (span.begin <= slab.begin && slab.end <= span.end) alive.push_back(box);
    }
    return find(alive, dim + 1);
  }

  const Box& gap() const { return gap_; }

 private:
  struct Event {
    std::int64_t at;
    Wide area;
    bool ends;
  };

  static Wide tail_volume(const Box& box, std::size_t dim) {
    Wide product = 1;
    for (std::size_t d = dim; d < box.ndim(); ++d) product *= static_cast<Wide>(box.extent[d]);
    return product;
  }

  /// Cuts the dimension into slabs at the faces of the boxes. Returns the interval of the first
  /// slab that is not filled by the boxes in it. Empty if all slabs are full.
  Interval first_thin_slab(const std::vector<Event>& events, std::size_t dim) const {
    const Wide full = tail_volume(whole_, dim + 1);
    const Interval span = whole_.interval(dim);
    std::int64_t at = span.begin;
    Wide area = 0;
    for (const Event& event : events) {
      if (event.at > at) {
        if (area != full) return {at, event.at};
        at = event.at;
      }
      area = event.ends ? area - event.area : area + event.area;
    }
    return {at, span.end};  // no box is active after the last face
  }

  Box whole_;
  Box gap_;
};

Wide union_from(const std::vector<const Box*>& boxes, std::size_t dim) {
  if (boxes.empty()) return 0;
  if (dim == boxes[0]->ndim()) return 1;
  std::vector<std::int64_t> cuts;
  for (const Box* box : boxes) {
    cuts.push_back(box->interval(dim).begin);
    cuts.push_back(box->interval(dim).end);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  Wide total = 0;
  std::vector<const Box*> alive;
  for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
    alive.clear();
    for (const Box* box : boxes) {
      const Interval span = box->interval(dim);
      if (span.begin <= cuts[c] && cuts[c] < span.end) alive.push_back(box);
    }
    total += static_cast<Wide>(cuts[c + 1] - cuts[c]) * union_from(alive, dim + 1);
  }
  return total;
}

std::vector<const Box*> pointers(std::span<const Box> boxes) {
  std::vector<const Box*> all;
  all.reserve(boxes.size());
  for (const Box& box : boxes) all.push_back(&box);
  return all;
}

}  // namespace

std::optional<Box> first_gap(const Box& whole, std::span<const Box> boxes) {
  if (whole.empty()) return std::nullopt;
  GapFinder finder(whole);
  if (!finder.find(pointers(boxes), 0)) return std::nullopt;
  return finder.gap();
}

std::uint64_t union_volume(std::span<const Box> boxes) {
  if (!first_overlap(boxes)) {
    std::uint64_t sum = 0;
    for (const Box& box : boxes) sum += static_cast<std::uint64_t>(box.elements());
    return sum;
  }
  return static_cast<std::uint64_t>(union_from(pointers(boxes), 0));
}

}  // namespace reprise
