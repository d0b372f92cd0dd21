#include "core/geometry/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/base/random.hpp"

namespace reprise {
namespace {

double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
}

double distance(double a, double b) { return a == b ? 0 : std::fabs(a - b); }

/// From the contract, element by element.
Comparison by_definition(DType dtype, const Bytes& left, const Bytes& right) {
  Comparison result;
  const std::size_t width = size_of(dtype);
  for (std::size_t i = 0; i * width < left.size(); ++i) {
    ++result.elements;
    const std::byte* a = left.data() + i * width;
    const std::byte* b = right.data() + i * width;
    if (std::equal(a, a + width, b)) continue;
    ++result.bit_mismatches;
    const Scalar x = scalar_at(dtype, a);
    const Scalar y = scalar_at(dtype, b);
    result.max_delta = larger(result.max_delta,
                              larger(distance(x.real, y.real), distance(x.imaginary, y.imaginary)));
    if (!result.first) result.first = static_cast<std::int64_t>(i);
  }
  return result;
}

void expect_same(const Comparison& found, const Comparison& right) {
  EXPECT_EQ(found.elements, right.elements);
  EXPECT_EQ(found.bit_mismatches, right.bit_mismatches);
  EXPECT_EQ(found.first, right.first);
  EXPECT_EQ(std::isnan(found.max_delta), std::isnan(right.max_delta));
  EXPECT_TRUE(std::isnan(right.max_delta) || found.max_delta == right.max_delta);
}

Comparison compare(DType dtype, const Bytes& left, const Bytes& right) {
  return compare_elements(dtype, left.data(), right.data(),
                          static_cast<std::int64_t>(left.size() / size_of(dtype)));
}

TEST(Compare, random_bits_of_every_type_are_judged_as_defined) {
  for (const DType dtype : all_dtypes()) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(std::string(name_of(dtype)) + ", seed " + std::to_string(seed));
      Stream random(seed);
      // Small and large; with few differences and with many; infinities and NaNs are among them.
      const std::size_t elements = seed % 4 == 0 ? 9000 : random.below(40);
      Bytes left(elements * size_of(dtype));
      for (auto& byte : left) byte = static_cast<std::byte>(random.next());
      Bytes right = left;
      const std::uint64_t rarity = seed % 3 == 0 ? 1 : 2000;
      for (auto& byte : right) {
        if (random.below(rarity) == 0) byte ^= static_cast<std::byte>(random.next());
      }
      expect_same(compare(dtype, left, right), by_definition(dtype, left, right));
    }
  }
}

TEST(Compare, all_values_of_one_and_two_bytes_beside_a_few_others) {
  for (const DType dtype : all_dtypes()) {
    if (size_of(dtype) > 2) continue;
    const std::size_t values = std::size_t{1} << (8 * size_of(dtype));
    for (const std::size_t other : {0UL, 1UL, 0x42UL, 0x80UL, 0x7c00UL, 0x7e01UL, 0xfc00UL}) {
      if (other >= values) continue;
      for (std::size_t bits = 0; bits < values; ++bits) {
        const auto element = [&](std::size_t value) {
          Bytes bytes;
          for (std::size_t b = 0; b < size_of(dtype); ++b) {
            bytes.push_back(static_cast<std::byte>(value >> (8 * b)));
          }
          return bytes;
        };
        expect_same(compare(dtype, element(bits), element(other)),
                    by_definition(dtype, element(bits), element(other)));
        if (testing::Test::HasFailure()) FAIL() << dtype << ' ' << bits << ' ' << other;
      }
    }
  }
}

TEST(Compare, one_flipped_bit_is_found_wherever_it_is) {
  for (const DType dtype : {DType::kUInt8, DType::kBFloat16, DType::kFloat32, DType::kComplex128}) {
    const Bytes left(4100 * size_of(dtype), std::byte{0x3f});
    Bytes right = left;
    for (std::size_t at = 0; at < left.size(); at += 251) {
      right[at] ^= std::byte{0x01};
      const Comparison found = compare(dtype, left, right);
      EXPECT_EQ(found.bit_mismatches, 1U);
      EXPECT_EQ(found.first, static_cast<std::int64_t>(at / size_of(dtype)));
      right[at] = left[at];
    }
    EXPECT_TRUE(compare(dtype, left, right).same());
  }
}

}  // namespace
}  // namespace reprise
