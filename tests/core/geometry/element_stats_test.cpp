// Tests the counts of ElementStats beside a count of one number after the other.

#include "core/geometry/element_stats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/geometry/dtype.hpp"

namespace reprise {
namespace {

/// Returns the least normal number of the types whose denormal numbers are counted; otherwise 0.
double least_normal(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return 0x1p-1022;
    case DType::kFloat32:
    case DType::kComplex64:
    case DType::kBFloat16:
      return 0x1p-126;
    case DType::kFloat16:
    case DType::kComplex32:
      return 0x1p-14;
    default:
      return 0;
  }
}

int numbers_in(DType dtype) {
  const std::string_view name = name_of(dtype);
  return name.starts_with("complex") || dtype == DType::kFloat4E2M1FNx2 ? 2 : 1;
}

ElementStats one_by_one(DType dtype, const std::vector<std::byte>& elements) {
  ElementStats stats;
  for (std::size_t at = 0; at < elements.size(); at += size_of(dtype)) {
    const Scalar scalar = scalar_at(dtype, elements.data() + at);
    for (int i = 0; i < numbers_in(dtype); ++i) {
      const double value = i == 0 ? scalar.first : scalar.second;
      ++stats.numbers;
      if (std::isnan(value)) {
        ++stats.nan;
        continue;
      }
      if (std::isinf(value)) {
        ++stats.infinite;
        continue;
      }
      if (value == 0) ++stats.zero;
      if (value != 0 && std::abs(value) < least_normal(dtype)) ++stats.denormal;
      stats.least = std::min(stats.least, value);
      stats.greatest = std::max(stats.greatest, value);
      stats.sum += value;
      stats.squares += value * value;
    }
  }
  return stats;
}

void expect_near(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return;
  if (std::isinf(a) || std::isinf(b)) {
    EXPECT_EQ(a, b);
  } else {
    EXPECT_NEAR(a, b, 1e-9 * (1 + std::abs(b)));
  }
}

constexpr DType kAll[] = {DType::kFloat64,      DType::kFloat32,    DType::kFloat16,
                          DType::kBFloat16,     DType::kComplex128, DType::kComplex64,
                          DType::kComplex32,    DType::kInt64,      DType::kInt32,
                          DType::kInt16,        DType::kInt8,       DType::kUInt64,
                          DType::kUInt32,       DType::kUInt16,     DType::kUInt8,
                          DType::kFloat8E4M3FN, DType::kFloat8E5M2, DType::kFloat4E2M1FNx2};

TEST(ElementStats, random_bits_are_counted_as_one_by_one) {
  std::mt19937_64 random(7);
  for (const DType dtype : kAll) {
    SCOPED_TRACE(name_of(dtype));
    for (const std::size_t count : {0, 1, 7, 8, 9, 100003}) {
      std::vector<std::byte> elements(count * size_of(dtype));
      for (auto& byte : elements) byte = static_cast<std::byte>(random());
      // Of random bits few are zero or denormal: zeros are put into every other byte of some.
      for (std::size_t i = 0; i < elements.size() / 2; ++i)
        elements[random() % elements.size()] = {};
      if (dtype == DType::kFloat64 || dtype == DType::kComplex128) {
        for (std::size_t i = 7; i < elements.size(); i += 16) elements[i] = std::byte{0x3f};
        for (std::size_t i = 15; i < elements.size(); i += 16) elements[i] = {};
      }
      const ElementStats expected = one_by_one(dtype, elements);
      ElementStats found;
      const std::size_t half = elements.size() / 2 / size_of(dtype) * size_of(dtype);
      found.add(dtype, std::span(elements).first(half));
      found.add(dtype, std::span(elements).subspan(half));
      EXPECT_EQ(found.numbers, expected.numbers);
      EXPECT_EQ(found.nan, expected.nan);
      EXPECT_EQ(found.infinite, expected.infinite);
      EXPECT_EQ(found.zero, expected.zero);
      EXPECT_EQ(found.denormal, expected.denormal);
      EXPECT_EQ(found.least, expected.least);
      EXPECT_EQ(found.greatest, expected.greatest);
      if (std::isfinite(expected.squares)) {
        expect_near(found.sum / (1 + found.absolute()), expected.sum / (1 + found.absolute()));
        expect_near(found.squares / (1 + expected.squares),
                    expected.squares / (1 + expected.squares));
      }
    }
  }
}

TEST(ElementStats, every_half_precision_number_has_its_class) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const auto word = static_cast<std::uint16_t>(bits);
      std::vector<std::byte> element(2);
      std::memcpy(element.data(), &word, 2);
      const ElementStats expected = one_by_one(dtype, element);
      ElementStats found;
      found.add(dtype, element);
      ASSERT_EQ(found.nan, expected.nan) << bits;
      ASSERT_EQ(found.infinite, expected.infinite) << bits;
      ASSERT_EQ(found.zero, expected.zero) << bits;
      ASSERT_EQ(found.denormal, expected.denormal) << bits;
      ASSERT_EQ(found.least, expected.least) << bits;
    }
  }
}

TEST(ElementStats, sums_and_constants) {
  const float values[] = {3, -4, 0};
  ElementStats stats;
  stats.add(DType::kFloat32, std::as_bytes(std::span(values)));
  EXPECT_EQ(stats.norm(), 5);
  EXPECT_DOUBLE_EQ(stats.mean(), -1.0 / 3);
  EXPECT_EQ(stats.absolute(), 4);
  EXPECT_FALSE(stats.constant());
  ElementStats same;
  EXPECT_FALSE(same.constant());
  const float twos[] = {2, 2};
  same.add(DType::kFloat32, std::as_bytes(std::span(twos)));
  EXPECT_TRUE(same.constant());
  const float nan[] = {NAN};
  same.add(DType::kFloat32, std::as_bytes(std::span(nan)));
  EXPECT_FALSE(same.constant());
}

}  // namespace
}  // namespace reprise
