#pragma once
// Describes the elements of a piece as nested loops over offsets. Kernels and the host use this
// description to visit the same elements.
//
//   global [4, 6], box [1:3, 0:6], local [2, 6]: dimensions contiguous on both sides, so one loop
//     12 times   global 6 + i   local i
//   box [1:3, 2:4], local [2, 2]: two loops
//      2 times   global 8 + 6 i        local 2 i
//      2 times                + j           + j

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/execution_space.hpp"
#include "core/geometry/piece.hpp"

namespace reprise {

/// One element: its row-major index in the global tensor, and its offsets in the local arrays `a`
/// and `b`, all in elements. This type is also used for the step from one element to the next.
struct ElementPlace {
  std::int64_t global = 0;
  std::int64_t a = 0;
  std::int64_t b = 0;

  REPRISE_HD constexpr void move(std::int64_t times, const ElementPlace& step) {
    global += times * step.global;
    a += times * step.a;
    b += times * step.b;
  }
};

/// The elements of one box in row-major order. Trivially copyable, so that a kernel can take it as
/// an argument.
struct ElementMap {
  struct Loop {
    std::int64_t count = 0;
    ElementPlace step;
  };

  std::int64_t elements = 0;
  ElementPlace first;
  std::array<Loop, kMaxNdim> loops;  ///< innermost loop first; loops of one iteration are left out
  std::int32_t depth = 0;

  /// Returns the place of element number `ordinal`. Requires 0 <= ordinal < elements.
  REPRISE_HD constexpr ElementPlace at(std::int64_t ordinal) const {
    ElementPlace place = first;
    for (std::int32_t d = 0; d < depth; ++d) {
      const Loop& loop = loops[static_cast<std::size_t>(d)];
      const bool outermost = d + 1 == depth;
      const std::int64_t rest = outermost ? 0 : ordinal / loop.count;
      place.move(ordinal - rest * loop.count, loop.step);
      ordinal = rest;
    }
    return place;
  }
};

/// The offset of a region's first element, and the strides of the region's dimensions, in elements.
struct Strided {
  std::int64_t first = 0;
  Dims strides;
};

/// Returns the map of a region. Dimensions that are contiguous in `global`, `a` and `b` are merged
/// into one loop.
ElementMap element_map(const Dims& extents, const Strided& global, const Strided& a,
                       const Strided& b);
/// Returns the map of `elements` elements that are adjacent on all sides and start at 0.
ElementMap line_map(std::int64_t elements);

/// Returns one map per box. `a` and `b` contain the same boxes of a tensor of `shape`; they say
/// where each box is stored in two different local arrays. Empty boxes are left out.
std::vector<ElementMap> element_maps(const Dims& shape, const std::vector<Piece>& a,
                                     const std::vector<Piece>& b);

/// Calls visit(place) for all elements in order, on the host.
template <class Visit>
void for_each_element(const ElementMap& map, const Visit& visit) {
  const ElementMap::Loop inner = map.depth > 0 ? map.loops[0] : ElementMap::Loop{1, {}};
  for (std::int64_t done = 0; done < map.elements; done += inner.count) {
    ElementPlace place = map.at(done);
    for (std::int64_t i = 0; i < inner.count; ++i, place.move(1, inner.step)) visit(place);
  }
}

}  // namespace reprise
