#include "core/geometry/element_map.hpp"

#include "core/base/check.hpp"

namespace reprise {
namespace {

/// True if one step of `outer` leads to the point where the loop `inner` ends.
bool runs_on(const ElementMap::Loop& inner, const ElementPlace& outer) {
  return outer.global == inner.count * inner.step.global && outer.a == inner.count * inner.step.a &&
         outer.b == inner.count * inner.step.b;
}

Strided of_piece(const Piece& piece) { return {piece.local, piece.strides}; }

}  // namespace

ElementMap element_map(const Dims& extents, const Strided& global, const Strided& a,
                       const Strided& b) {
  ElementMap map{.elements = volume(extents), .first = {global.first, a.first, b.first}};
  for (std::size_t d = extents.size(); d-- > 0;) {
    if (extents[d] == 1) continue;
    const ElementPlace step{global.strides[d], a.strides[d], b.strides[d]};
    if (map.depth > 0) {
      ElementMap::Loop& inner = map.loops[static_cast<std::size_t>(map.depth - 1)];
      if (runs_on(inner, step)) {
        inner.count *= extents[d];
        continue;
      }
    }
    map.loops[static_cast<std::size_t>(map.depth++)] = {extents[d], step};
  }
  return map;
}

ElementMap line_map(std::int64_t elements) {
  const Strided line{0, {1}};
  return element_map({elements}, line, line, line);
}

std::vector<ElementMap> element_maps(const Dims& shape, const std::vector<Piece>& a,
                                     const std::vector<Piece>& b) {
  CHECK(a.size() == b.size(), a.size(), b.size());
  const Dims strides = contiguous_strides(shape);
  std::vector<ElementMap> maps;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Box& box = a[i].box;
    if (box.empty()) continue;
    maps.push_back(element_map(box.extent, {linear_index(box.offset, shape), strides},
                               of_piece(a[i]), of_piece(b[i])));
  }
  return maps;
}

}  // namespace reprise
