// Tests how lines of one tensor are found in another: permuted, reversed, interleaved, in part.

#include "core/diff/line_order.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace reprise::test::line_order_test {
namespace {

using Lines = std::vector<std::uint64_t>;

/// Lines 100, 101, ... at these places.
Lines lines(const std::vector<int>& places) {
  Lines made;
  for (const int place : places) made.push_back(100U + static_cast<std::uint64_t>(place));
  return made;
}

Lines in_order(int count) {
  std::vector<int> places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  return lines(places);
}

struct Row {
  const char* name;
  std::vector<int> right;  ///< of 12 lines on the left
  std::int64_t block;
  std::string pattern;
};

TEST(LineOrder, a_permutation_has_the_largest_blocks_and_its_pattern) {
  const Row rows[] = {
      {"pairs", {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 10, 11}, 2, "permuted"},
      {"halves", {6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5}, 6, "exchanged"},
      {"reversed", {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, 1, "in reverse order"},
      {"reversed blocks", {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3}, 4, "in reverse order"},
      {"rotated", {3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2}, 3, "rotated by 1"},
      {"interleaved",
       {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11},
       1,
       "in the order of a transposed table of 3 x 4 blocks"},
  };
  for (const Row& row : rows) {
    const LineOrder order = order_of(in_order(12), lines(row.right));
    EXPECT_TRUE(order.permuted) << row.name;
    EXPECT_EQ(order.block, row.block) << row.name;
    ASSERT_NE(order.block, 0) << row.name;
    EXPECT_EQ(pattern_of(order), row.pattern) << row.name;
    EXPECT_EQ(order.found(), 12) << row.name;
  }
}

TEST(LineOrder, few_unequal_blocks_are_told_instead_of_many_of_one_size) {
  const LineOrder order = order_of(in_order(12), lines({9, 10, 11, 5, 6, 7, 8, 0, 1, 2, 3, 4}));
  EXPECT_TRUE(order.permuted);
  EXPECT_EQ(order.block, 0);
  EXPECT_EQ(order.blocks, (std::vector<LineBlock>{{{0, 3}, 9}, {{3, 7}, 5}, {{7, 12}, 0}}));
}

TEST(LineOrder, equal_lines_stay_with_the_block_that_they_continue) {
  Lines left = in_order(8);
  left[3] = left[6] = 7;  // such as rows of zeros
  const Lines right = {left[4], left[5], left[6], left[7], left[0], left[1], left[2], left[3]};
  const LineOrder order = order_of(left, right);
  EXPECT_EQ(order.block, 4);
  EXPECT_EQ(pattern_of(order), "exchanged");
}

TEST(LineOrder, lines_that_are_new_are_in_no_block) {
  const LineOrder order = order_of(in_order(6), lines({0, 1, 2, 3, 4, 5, 70, 71}));
  EXPECT_FALSE(order.permuted);
  EXPECT_EQ(order.blocks, (std::vector<LineBlock>{{{0, 6}, 0}}));
  EXPECT_EQ(order.moved(), 0);
  const LineOrder some = order_of(in_order(6), lines({4, 5, 2, 70, 0, 1}));
  EXPECT_FALSE(some.permuted);
  EXPECT_EQ(some.blocks, (std::vector<LineBlock>{{{0, 2}, 4}, {{2, 3}, 2}, {{4, 6}, 0}}));
  EXPECT_EQ(some.found(), 5);
  EXPECT_EQ(some.moved(), 4);
}

TEST(LineOrder, a_million_equal_lines_take_no_time) {
  Lines left(1U << 20U, 5);
  Lines right = left;
  left.front() = right.back() = 6;
  EXPECT_TRUE(order_of(left, right).permuted);
}

}  // namespace
}  // namespace reprise::test::line_order_test
