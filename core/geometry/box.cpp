#include "core/geometry/box.hpp"

#include <algorithm>
#include <sstream>

#include "core/base/check.hpp"

namespace reprise {

std::ostream& operator<<(std::ostream& out, const Box& box) {
  out << '[';
  for (std::size_t d = 0; d < box.ndim(); ++d) {
    out << (d == 0 ? "" : ", ") << box.offset[d] << ':' << box.offset[d] + box.extent[d];
  }
  return out << ']';
}

std::string to_string(const Box& box) {
  std::ostringstream out;
  out << box;
  return out.str();
}

std::optional<Box> intersect(const Box& a, const Box& b) {
  CHECK(a.ndim() == b.ndim(), a, b);
  Box common = a;
  for (std::size_t d = 0; d < a.ndim(); ++d) {
    const std::int64_t begin = std::max(a.offset[d], b.offset[d]);
    const std::int64_t end = std::min(a.interval(d).end, b.interval(d).end);
    if (end <= begin) return std::nullopt;
    common.offset[d] = begin;
    common.extent[d] = end - begin;
  }
  return common;
}

bool contains(const Box& outer, const Box& inner) {
  CHECK(outer.ndim() == inner.ndim(), outer, inner);
  for (std::size_t d = 0; d < outer.ndim(); ++d) {
    if (inner.offset[d] < outer.offset[d]) return false;
    if (inner.interval(d).end > outer.interval(d).end) return false;
  }
  return true;
}

std::vector<Box> subtract(const Box& box, const Box& hole) {
  CHECK(contains(box, hole), box, hole);
  std::vector<Box> rest;
  Box core = box;  // shrinks to `hole` one dimension at a time
  for (std::size_t d = 0; d < box.ndim(); ++d) {
    const Interval whole = core.interval(d);
    const Interval cut = hole.interval(d);
    const auto keep = [&](Interval part) {
      if (part.length() == 0) return;
      Box slab = core;
      slab.offset[d] = part.begin;
      slab.extent[d] = part.length();
      rest.push_back(slab);
    };
    keep({whole.begin, cut.begin});
    keep({cut.end, whole.end});
    core.offset[d] = cut.begin;
    core.extent[d] = cut.length();
  }
  return rest;
}

Box relative_to(const Box& box, const Dims& origin) {
  CHECK(box.ndim() == origin.size(), box, origin);
  Box moved = box;
  for (std::size_t d = 0; d < box.ndim(); ++d) moved.offset[d] -= origin[d];
  return moved;
}

}  // namespace reprise
