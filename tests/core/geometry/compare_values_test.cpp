// Tests the comparison of elements of two types by value.

#include "core/geometry/compare_values.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace reprise {
namespace {

template <class Number>
TypedElements elements_of(DType dtype, const std::vector<Number>& numbers) {
  return {dtype, reinterpret_cast<const std::byte*>(numbers.data())};
}

TEST(CompareValues, the_type_that_has_all_values_of_both) {
  struct Row {
    DType a;
    DType b;
    std::optional<DType> type;
  };
  const std::vector<Row> rows = {
      {DType::kFloat16, DType::kBFloat16, DType::kFloat32},
      {DType::kFloat32, DType::kBFloat16, DType::kFloat32},
      {DType::kFloat64, DType::kFloat8E4M3FN, DType::kFloat64},
      {DType::kFloat8E5M2, DType::kFloat8E8M0FNU, DType::kFloat32},
      {DType::kInt16, DType::kFloat16, DType::kFloat32},
      {DType::kInt32, DType::kFloat32, DType::kFloat64},
      {DType::kUInt32, DType::kFloat64, DType::kFloat64},
      {DType::kInt64, DType::kFloat64, std::nullopt},
      {DType::kUInt64, DType::kFloat8E5M2, std::nullopt},
      {DType::kInt8, DType::kInt64, DType::kInt64},
      {DType::kBool, DType::kUInt8, DType::kUInt8},
      {DType::kUInt8, DType::kInt8, DType::kInt16},
      {DType::kUInt32, DType::kInt16, DType::kInt64},
      {DType::kUInt64, DType::kUInt16, DType::kUInt64},
      {DType::kUInt64, DType::kInt64, std::nullopt},
      {DType::kComplex32, DType::kComplex128, DType::kComplex128},
      {DType::kComplex64, DType::kFloat32, std::nullopt},
      {DType::kFloat4E2M1FNx2, DType::kFloat32, std::nullopt},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(exact_type_of(row.a, row.b), row.type) << row.a << ' ' << row.b;
    EXPECT_EQ(exact_type_of(row.b, row.a), row.type) << row.b << ' ' << row.a;
  }
  for (const DType dtype : all_dtypes()) EXPECT_EQ(exact_type_of(dtype, dtype), dtype);
}

/// A bfloat16 is the upper half of a float32, so the conversion needs no arithmetic.
TEST(CompareValues, each_bfloat16_is_the_float32_with_its_bits_and_no_other) {
  std::vector<std::uint16_t> halves;
  std::vector<std::uint32_t> wholes;
  for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
    halves.push_back(static_cast<std::uint16_t>(bits));
    wholes.push_back(bits << 16U);
  }
  const auto all = static_cast<std::int64_t>(halves.size());
  const auto same = compare_values(elements_of(DType::kBFloat16, halves),
                                   elements_of(DType::kFloat32, wholes), all);
  EXPECT_TRUE(same.same());
  EXPECT_EQ(same.elements, halves.size());
  for (auto& bits : wholes)
    bits += 1;  // the next float32; a NaN stays one, an infinity becomes one
  const auto other = compare_values(elements_of(DType::kBFloat16, halves),
                                    elements_of(DType::kFloat32, wholes), all);
  constexpr std::uint64_t kNans = 2 * 127;
  EXPECT_EQ(other.bit_mismatches, halves.size() - kNans);
  EXPECT_EQ(other.first, 0);
  EXPECT_TRUE(std::isnan(other.max_delta)) << "infinity and NaN differ";
}

TEST(CompareValues, signs_of_zero_nan_and_integers_beyond_a_double) {
  const std::vector<float> floats = {-0.0F, std::numeric_limits<float>::quiet_NaN(), 3, 1.5F};
  const std::vector<std::int32_t> integers = {0, 0, 3, 1};
  const auto mixed =
      compare_values(elements_of(DType::kFloat32, floats), elements_of(DType::kInt32, integers), 4);
  EXPECT_EQ(mixed.bit_mismatches, 3U) << "-0.0 and 0, NaN and 0, 1.5 and 1";
  EXPECT_EQ(mixed.first, 0);
  const auto last =
      compare_values({DType::kFloat32, elements_of(DType::kFloat32, floats).data + 12},
                     {DType::kInt32, elements_of(DType::kInt32, integers).data + 12}, 1);
  EXPECT_EQ(last.max_delta, 0.5);

  const std::vector<std::int64_t> large = {(std::int64_t{1} << 62U) + 1, -1, 7};
  const std::vector<std::uint32_t> small = {0, 0xffffffffU, 7};
  const auto ints =
      compare_values(elements_of(DType::kInt64, large), elements_of(DType::kUInt32, small), 3);
  EXPECT_EQ(ints.bit_mismatches, 2U);
  const std::vector<std::uint64_t> huge = {(std::uint64_t{1} << 63U) + 1};
  const std::vector<std::uint8_t> byte = {1};
  EXPECT_EQ(compare_values(elements_of(DType::kUInt64, huge), elements_of(DType::kUInt8, byte), 1)
                .max_delta,
            0x1p63);
}

TEST(CompareValues, both_parts_of_a_complex_number_count) {
  const std::vector<float> singles = {1, 2, 3, 4};
  const std::vector<double> doubles = {1, 2, 3, 4.25};
  const auto found = compare_values(elements_of(DType::kComplex64, singles),
                                    elements_of(DType::kComplex128, doubles), 2);
  EXPECT_EQ(found.bit_mismatches, 1U);
  EXPECT_EQ(found.first, 1);
  EXPECT_EQ(found.max_delta, 0.25);
}

}  // namespace
}  // namespace reprise
