#include "core/geometry/element_map.hpp"

#include <gtest/gtest.h>

#include "tests/core/geometry/small_worlds.hpp"

namespace reprise {
namespace {

/// Visits every box of every small tensor.
template <class Visit>
void for_each_box(const Visit& visit) {
  for (const Dims& shape : std::vector<Dims>{{}, {4}, {3, 4}, {2, 1, 3}, {2, 2, 2, 2}, {0, 2}}) {
    std::vector<Box> boxes = {{{}, {}}};
    for (const auto extent : shape) {
      std::vector<Box> longer;
      for (const Box& box : boxes) {
        for (std::int64_t begin = 0; begin <= extent; ++begin) {
          for (std::int64_t end = begin; end <= extent; ++end) {
            longer.push_back(box);
            longer.back().offset.push_back(begin);
            longer.back().extent.push_back(end - begin);
          }
        }
      }
      boxes = std::move(longer);
    }
    for (const Box& box : boxes) visit(shape, box);
  }
}

Dims transposed(const Dims& extents) {
  Dims strides = Dims::filled(extents.size(), 0);
  std::int64_t next = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    strides[d] = next;
    next *= extents[d];
  }
  return strides;
}

TEST(ElementMap, places_match_each_index_for_every_box_of_small_tensors) {
  int boxes = 0;
  for_each_box([&boxes](const Dims& shape, const Box& box) {
    const Piece packed{box, 2, contiguous_strides(box.extent)};
    for (const Piece& other :
         {Piece{box, linear_index(box.offset, shape), contiguous_strides(shape)},
          Piece{box, 1, transposed(box.extent)}}) {
      const auto maps = element_maps(shape, {packed}, {other});
      ASSERT_EQ(maps.size(), box.empty() ? 0U : 1U);
      if (box.empty()) continue;
      std::int64_t ordinal = 0;
      for_each_element(maps[0], [&](const ElementPlace& at) {
        Dims index = index_at(ordinal, box.extent);
        for (std::size_t d = 0; d < index.size(); ++d) index[d] += box.offset[d];
        ASSERT_EQ(at.global, linear_index(index, shape)) << shape << box;
        ASSERT_EQ(at.a, local_offset(packed, index)) << shape << box;
        ASSERT_EQ(at.b, local_offset(other, index)) << shape << box;
        const ElementPlace same = maps[0].at(ordinal++);
        ASSERT_EQ(same.global, at.global);
        ASSERT_EQ(same.a, at.a);
        ASSERT_EQ(same.b, at.b);
      });
      ASSERT_EQ(ordinal, box.elements());
      ++boxes;
    }
  });
  EXPECT_GT(boxes, 300);
}

TEST(ElementMap, what_runs_on_everywhere_is_one_loop) {
  const auto depth = [](const Dims& shape, const Box& box) {
    const auto piece = contiguous_piece(box);
    return element_maps(shape, {piece}, {piece}).front().depth;
  };
  EXPECT_EQ(depth({4, 6, 2}, Box::whole({4, 6, 2})), 1);
  EXPECT_EQ(depth({4, 6, 2}, {{1, 0, 0}, {2, 6, 2}}), 1);
  EXPECT_EQ(depth({4, 6, 2}, {{1, 2, 0}, {2, 3, 2}}), 2);
  EXPECT_EQ(depth({4, 6, 2}, {{1, 2, 1}, {2, 3, 1}}), 2);
  EXPECT_EQ(depth({}, {{}, {}}), 0);
}

}  // namespace
}  // namespace reprise
