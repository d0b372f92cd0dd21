#include "core/base/natural_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace reprise {
namespace {

TEST(NaturalOrder, numbers_count_by_their_value_and_all_else_by_its_letters) {
  const std::vector<std::string> sorted = {
      "", "a", "layers.2.w", "layers.10.b", "layers.10.w", "layers.10.w2", "layers.x", "z1"};
  std::vector<std::string> names = sorted;
  do {
    std::vector<std::string> shuffled = names;
    std::ranges::sort(shuffled, in_natural_order);
    EXPECT_EQ(shuffled, sorted);
    std::rotate(names.begin(), names.begin() + 1, names.end());
  } while (names != sorted);
  EXPECT_FALSE(in_natural_order("a007", "a7"));
  EXPECT_FALSE(in_natural_order("a7", "a007"));
  EXPECT_TRUE(in_natural_order("a13", "a120"));
  EXPECT_TRUE(in_natural_order("a1b", "a12"));
  EXPECT_TRUE(in_natural_order("a10009b", "a10010a"));
  EXPECT_TRUE(in_natural_order("a99999999999999999998", "a99999999999999999999"));
}

}  // namespace
}  // namespace reprise
