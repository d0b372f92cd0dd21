#include "core/geometry/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>

namespace reprise {
namespace {

/// What the highest codes of a format mean.
enum class Top { kInfinity, kOneNan, kNegativeZeroIsNan };

/// Computes the values independently of the code under test: counts up from zero in steps of one
/// unit in the last place.
std::vector<double> ladder(int exponent_bits, int mantissa_bits, int bias) {
  std::vector<double> values;
  double value = 0;
  for (int exponent = 0; exponent < 1 << exponent_bits; ++exponent) {
    double step = 1;  // becomes one unit in the last place
    const int power = std::max(exponent, 1) - bias - mantissa_bits;
    for (int i = 0; i < power; ++i) step *= 2;
    for (int i = 0; i > power; --i) step /= 2;
    for (int m = 0; m < 1 << mantissa_bits; ++m) {
      values.push_back(value);
      value += step;
    }
  }
  return values;
}

template <class Bits>
void expect_ladder(DType dtype, int exponent_bits, int mantissa_bits, int bias, Top top) {
  const auto values = ladder(exponent_bits, mantissa_bits, bias);
  const std::size_t infinity = values.size() - (std::size_t{1} << mantissa_bits);
  for (std::size_t bits = 0; bits < 2 * values.size(); ++bits) {
    const bool negative = bits >= values.size();
    const std::size_t magnitude = bits % values.size();
    double expected = negative ? -values[magnitude] : values[magnitude];
    bool nan = false;
    if (top == Top::kInfinity && magnitude >= infinity) {
      nan = magnitude > infinity;
      expected = negative ? -std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::infinity();
    }
    if (top == Top::kOneNan) nan = magnitude + 1 == values.size();
    if (top == Top::kNegativeZeroIsNan) nan = negative && magnitude == 0;
    const auto raw = static_cast<Bits>(bits);
    std::byte element[sizeof raw];
    std::memcpy(element, &raw, sizeof raw);
    const double found = scalar_at(dtype, element).first;
    if (nan) {
      ASSERT_TRUE(std::isnan(found)) << dtype << " " << bits;
    } else {
      ASSERT_EQ(found, expected) << dtype << " " << bits;
      ASSERT_EQ(std::signbit(found), std::signbit(expected)) << dtype << " " << bits;
    }
  }
}

TEST(ScalarAt, every_bit_pattern_of_the_narrow_floats) {
  expect_ladder<std::uint16_t>(DType::kFloat16, 5, 10, 15, Top::kInfinity);
  expect_ladder<std::uint16_t>(DType::kBFloat16, 8, 7, 127, Top::kInfinity);
  expect_ladder<std::uint8_t>(DType::kFloat8E5M2, 5, 2, 15, Top::kInfinity);
  expect_ladder<std::uint8_t>(DType::kFloat8E4M3FN, 4, 3, 7, Top::kOneNan);
  expect_ladder<std::uint8_t>(DType::kFloat8E4M3FNUZ, 4, 3, 8, Top::kNegativeZeroIsNan);
  expect_ladder<std::uint8_t>(DType::kFloat8E5M2FNUZ, 5, 2, 16, Top::kNegativeZeroIsNan);
}

struct Known {
  DType dtype;
  std::uint32_t bits;
  double value;
};

TEST(ScalarAt, known_values) {
  constexpr Known kRows[] = {
      {DType::kFloat8E4M3FN, 0x7e, 448},
      {DType::kFloat8E5M2, 0x7b, 57344},
      {DType::kFloat8E4M3FNUZ, 0x7f, 240},
      {DType::kFloat8E5M2FNUZ, 0x7f, 57344},
      {DType::kFloat8E8M0FNU, 127, 1},
      {DType::kFloat8E8M0FNU, 128, 2},
      {DType::kFloat16, 0x7bff, 65504},
      {DType::kFloat16, 0x3555, 0.333251953125},
      {DType::kBFloat16, 0x3f80, 1},
      {DType::kBFloat16, 0xc040, -3},
      {DType::kFloat32, 0x3f000000, 0.5},
      {DType::kInt8, 0xff, -1},
      {DType::kUInt8, 0xff, 255},
      {DType::kInt16, 0x8000, -32768},
      {DType::kUInt16, 0x8000, 32768},
      {DType::kInt32, 0xffffffff, -1},
      {DType::kUInt32, 0xffffffff, 4294967295},
      {DType::kBool, 1, 1},
      {DType::kComplex32, 0xc0003c00, 1},
  };
  for (const Known& row : kRows) {
    std::byte element[4];
    std::memcpy(element, &row.bits, sizeof element);
    EXPECT_EQ(scalar_at(row.dtype, element).first, row.value) << row.dtype;
  }
  const std::uint32_t half_pair = 0xc0003c00;
  std::byte element[4];
  std::memcpy(element, &half_pair, sizeof element);
  EXPECT_EQ(scalar_at(DType::kComplex32, element).second, -2);
}

TEST(ScalarAt, a_byte_of_float4_holds_two_values_the_low_bits_first) {
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};  // from the OCP MX definition of e2m1
  for (unsigned bits = 0; bits < 256; ++bits) {
    const auto element = static_cast<std::byte>(bits);
    const auto value = [&](unsigned four) {
      return std::copysign(kValues[four & 7U], four >= 8 ? -1.0 : 1.0);
    };
    const Scalar found = scalar_at(DType::kFloat4E2M1FNx2, &element);
    EXPECT_EQ(found.first, value(bits & 15U)) << bits;
    EXPECT_EQ(found.second, value(bits >> 4U)) << bits;
    EXPECT_EQ(std::signbit(found.second), bits >= 128) << bits;
  }
}

TEST(DType, names_are_unique_and_go_both_ways) {
  std::set<std::string> names;
  for (const DType dtype : all_dtypes()) {
    EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
    EXPECT_TRUE(names.emplace(name_of(dtype)).second);
    EXPECT_GT(size_of(dtype), 0U);
  }
  EXPECT_EQ(names.size(), 22U);
  EXPECT_FALSE(dtype_named("float"));
  EXPECT_EQ(size_of(DType::kComplex128), 16U);
  EXPECT_EQ(size_of(DType::kBFloat16), 2U);
}

}  // namespace
}  // namespace reprise
