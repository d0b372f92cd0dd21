// Tests the union of boxes against a count of elements.
#include "core/geometry/sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/random.hpp"
#include "tests/core/geometry/small_worlds.hpp"

namespace reprise {
namespace {

/// Counts the elements that at least one box holds, without the code under test.
std::uint64_t counted(const Dims& shape, const std::vector<Box>& boxes) {
  std::vector<std::pair<brute::Numbers, brute::Numbers>> plain;
  for (const Box& box : boxes) {
    plain.emplace_back(test::numbers(box.offset), test::numbers(box.extent));
  }
  const auto times = brute::times_covered(test::numbers(shape), plain);
  return times.size() - static_cast<std::size_t>(std::count(times.begin(), times.end(), 0));
}

TEST(Sweep, a_union_of_boxes_counts_each_element_once) {
  constexpr std::uint64_t kLength = 6;
  Stream random(1);
  for (int i = 0; i < 300; ++i) {
    Dims shape;
    for (std::uint64_t d = 1 + random.below(3); d > 0; --d) shape.push_back(kLength);
    std::vector<Box> boxes(1 + random.below(5));
    for (Box& box : boxes) {
      for (std::size_t d = 0; d < shape.size(); ++d) {
        const std::uint64_t offset = random.below(kLength);
        box.offset.push_back(static_cast<std::int64_t>(offset));
        box.extent.push_back(static_cast<std::int64_t>(1 + random.below(kLength - offset)));
      }
    }
    ASSERT_EQ(union_volume(boxes), counted(shape, boxes)) << i;
  }
}

/// Slices of a dimension are told apart at once along that dimension, and along no other.
TEST(Sweep, goes_along_the_dimension_that_tells_the_boxes_apart) {
  constexpr std::int64_t kBoxes = 1000;
  for (const std::size_t dim : {0U, 1U, 2U}) {
    std::vector<Box> boxes(kBoxes, Box::whole({kBoxes, kBoxes, kBoxes}));
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      boxes[i].offset[dim] = static_cast<std::int64_t>(i);
      boxes[i].extent[dim] = 1;
    }
    const OverlapSearch search = search_overlap(boxes, 20 * kBoxes);
    EXPECT_TRUE(search.finished) << dim;
    EXPECT_FALSE(search.pair) << dim;
  }
}

TEST(Sweep, finds_a_gap_among_many_boxes_of_equal_begin_and_end) {
  constexpr std::int64_t kBoxes = 3000;
  constexpr std::int64_t kLength = std::int64_t{1} << 40U;
  std::vector<Box> boxes;
  for (std::int64_t i = 0; i < kBoxes; ++i) boxes.push_back({{0, i}, {kLength, 1}});
  const Box whole = Box::whole({kLength, kBoxes});
  EXPECT_EQ(first_gap(whole, boxes), std::nullopt);
  const Box left_out = boxes[kBoxes / 2];
  boxes.erase(boxes.begin() + kBoxes / 2);
  EXPECT_EQ(first_gap(whole, boxes), left_out);
}

}  // namespace
}  // namespace reprise
