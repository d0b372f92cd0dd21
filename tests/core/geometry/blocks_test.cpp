// Tests the boxes of for_each_block().

#include "core/geometry/blocks.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace reprise {
namespace {

std::vector<Box> blocks_of(const Box& part, std::int64_t elements_max) {
  std::vector<Box> blocks;
  for_each_block(part, elements_max, [&blocks](const Box& box) { blocks.push_back(box); });
  return blocks;
}

TEST(Blocks, those_of_a_part_are_those_of_its_shape_moved) {
  const Dims offset{3, 0, 5};
  for (const Dims& extent : {Dims{1, 1, 1}, Dims{3, 4, 2}, Dims{2, 5, 7}, Dims{2, 0, 7}}) {
    for (const std::int64_t most : {1, 2, 3, 7, 14, 35, 1000}) {
      std::vector<Box> moved;
      for_each_block(extent, most, [&](Box box) {
        EXPECT_LE(box.elements(), most);
        for (std::size_t d = 0; d < offset.size(); ++d) box.offset[d] += offset[d];
        moved.push_back(box);
      });
      EXPECT_EQ(blocks_of({offset, extent}, most), moved);
    }
  }
}

TEST(Blocks, a_part_without_dimensions_is_one_block) {
  EXPECT_EQ(blocks_of({{}, {}}, 1), std::vector<Box>{Box{}});
}

}  // namespace
}  // namespace reprise
