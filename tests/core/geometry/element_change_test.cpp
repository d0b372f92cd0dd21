// Tests how far elements moved, relative to what they were.

#include "core/geometry/element_change.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise::test::element_change_test {
namespace {

ElementChange change(const std::vector<float>& before, const std::vector<float>& after) {
  ElementChange found;
  found.add(DType::kFloat32, reinterpret_cast<const std::byte*>(before.data()), DType::kFloat32,
            reinterpret_cast<const std::byte*>(after.data()),
            static_cast<std::int64_t>(before.size()));
  return found;
}

TEST(ElementChange, is_the_norm_of_the_difference_over_that_before) {
  EXPECT_DOUBLE_EQ(change({3, 4}, {3, 9}).relative(), 1);
  EXPECT_DOUBLE_EQ(change(std::vector<float>(2000, 2), std::vector<float>(2000, 3)).relative(),
                   0.5);
  EXPECT_EQ(change({1, 2}, {1, 2}).relative(), 0);
  EXPECT_TRUE(std::isinf(change({0, 0}, {1, 0}).relative()));
  EXPECT_TRUE(std::isnan(change({1, std::nanf("")}, {2, 1}).relative()));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isnan(change({1, 1}, {1, infinity}).relative()));
}

TEST(ElementChange, parts_and_unchanged_elements_add_up) {
  const std::vector<float> before = {1, 2, 3, 4};
  const std::vector<float> after = {1, 2, 3, 5};
  ElementChange parts;
  parts.add_unchanged(DType::kFloat32, reinterpret_cast<const std::byte*>(before.data()), 2);
  parts.add(change({3, 4}, {3, 5}));
  EXPECT_DOUBLE_EQ(parts.relative(), change(before, after).relative());
}

TEST(ElementChange, complex_numbers_and_integers_are_numbers_too) {
  const std::vector<std::int64_t> before = {10, 0};
  const std::vector<std::int64_t> after = {10, 5};
  ElementChange found;
  found.add(DType::kInt64, reinterpret_cast<const std::byte*>(before.data()), DType::kInt64,
            reinterpret_cast<const std::byte*>(after.data()), 2);
  EXPECT_DOUBLE_EQ(found.relative(), 0.5);
  const std::vector<float> complex_before = {3, 4};
  const std::vector<float> complex_after = {3, 9};
  ElementChange complex;
  complex.add(DType::kComplex64, reinterpret_cast<const std::byte*>(complex_before.data()),
              DType::kComplex64, reinterpret_cast<const std::byte*>(complex_after.data()), 1);
  EXPECT_DOUBLE_EQ(complex.relative(), 1);
}

}  // namespace
}  // namespace reprise::test::element_change_test
