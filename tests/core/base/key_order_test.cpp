#include "core/base/key_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/random.hpp"

namespace reprise::test::key_order_test {
namespace {

/// Returns the order in which a stable sort of the strings puts them.
std::vector<std::uint32_t> by_comparing(const std::vector<std::string>& keys) {
  std::vector<std::uint32_t> order(keys.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::uint32_t at) { return keys[at]; });
  return order;
}

void expect_sorted(std::vector<std::string> keys) {
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  const auto order = order_of_keys(views);
  EXPECT_EQ(order, by_comparing(keys));
  std::vector<std::string> expected;
  for (const std::uint32_t at : order) expected.push_back(keys[at]);
  sort_by_keys(keys, [](const std::string& key) -> const std::string& { return key; });
  EXPECT_EQ(keys, expected);
}

TEST(KeyOrder, is_that_of_the_strings) {
  expect_sorted({});
  expect_sorted({"one"});
  expect_sorted({"layers.10.w", "layers.9.w", "layers.1.w", "layers.1", "layers.1.w", "layers."});
  expect_sorted({std::string("a\0", 2), "a", std::string("a\0\0", 3), "a\xff", "a\x7f", ""});
  expect_sorted({"begins alike for long: 2", "begins alike for long: 1", "begins al"});
}

TEST(KeyOrder, of_random_keys_is_that_of_the_strings) {
  Stream random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> keys(random.below(40));
    for (std::string& key : keys) {
      key = "k";
      for (auto left = random.below(12); left > 0; --left) {
        key += static_cast<char>('a' + static_cast<char>(random.below(2)));
      }
    }
    expect_sorted(keys);
  }
}

}  // namespace
}  // namespace reprise::test::key_order_test
