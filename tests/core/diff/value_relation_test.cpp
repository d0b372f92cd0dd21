// Tests that relations of elements are found, and that chance, zeros and constants are none.

#include "core/diff/value_relation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/geometry/convert.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise::test::value_relation_test {
namespace {

using Kind = ValueRelation::Kind;
using Function = std::function<double(double)>;

/// Rounds by other means than the code that is tested: bytes by trying each of them.
double rounded_to(DType dtype, double value) {
  Bytes element(size_of(dtype));
  if (can_convert(DType::kFloat64, dtype)) {
    convert(DType::kFloat64, std::as_bytes(std::span(&value, 1)), dtype, element.data());
    return scalar_at(dtype, element.data()).first;
  }
  double best = std::nan("");
  bool best_is_even = false;
  for (unsigned bits = 0; bits < 256; ++bits) {
    element[0] = static_cast<std::byte>(bits);
    const double number = scalar_at(dtype, element.data()).first;
    if (!std::isfinite(number)) continue;
    const double better = std::fabs(best - value) - std::fabs(number - value);
    if (std::isnan(best) || better > 0 || (better == 0 && !best_is_even && bits % 2 == 0)) {
      best = number;
      best_is_even = bits % 2 == 0;
    }
  }
  return best;
}

std::vector<double> numbers(DType dtype, std::size_t count = 64) {
  std::vector<double> made;
  for (std::size_t i = 0; i < count; ++i) {
    made.push_back(rounded_to(dtype, std::sin(static_cast<double>(i) * 1.7) * 3));
  }
  return made;
}

std::optional<ValueRelation> relation(DType left, DType right, const std::vector<double>& a,
                                      const std::vector<double>& b) {
  RelationFinder finder(left, right);
  finder.add(a.data(), b.data(), a.size());
  return finder.found();
}

std::vector<double> mapped(const std::vector<double>& from, const Function& function) {
  std::vector<double> made;
  for (const double number : from) made.push_back(function(number));
  return made;
}

TEST(ValueRelation, arithmetic_is_told_by_its_name) {
  constexpr auto kWide = DType::kFloat32;
  constexpr auto kHalf = DType::kBFloat16;
  const auto wide = numbers(kWide);
  const auto half = numbers(kHalf);
  const auto round = [](DType dtype) {
    return [dtype](double number) { return rounded_to(dtype, number); };
  };
  EXPECT_EQ(relation(kWide, kWide, wide, mapped(wide, round(kHalf))),
            (ValueRelation{.kind = Kind::kRounded, .dtype = kHalf}));
  EXPECT_EQ(relation(kWide, kWide, mapped(wide, round(DType::kFloat8E4M3FN)), wide),
            (ValueRelation{.kind = Kind::kRoundedBack, .dtype = DType::kFloat8E4M3FN}));
  EXPECT_EQ(relation(kWide, kHalf, wide, mapped(wide, round(kHalf))),
            (ValueRelation{.kind = Kind::kRounded, .dtype = kHalf}));
  EXPECT_EQ(relation(kHalf, kWide, half, half), (ValueRelation{.kind = Kind::kSameValue}));
  EXPECT_EQ(relation(kWide, kWide, wide, mapped(wide, [](double n) { return -n; })),
            (ValueRelation{.kind = Kind::kNegated}));
  EXPECT_EQ(relation(kWide, kWide, wide, mapped(wide, [](double n) { return n * 4; })),
            (ValueRelation{.kind = Kind::kScaled, .factor = 4}));
  EXPECT_EQ(relation(kHalf, kHalf, half,
                     mapped(half, [&](double n) { return rounded_to(kHalf, n * 0.3); })),
            (ValueRelation{.kind = Kind::kScaled, .factor = 0.3}));
  const auto third = relation(kWide, kWide, wide,
                              mapped(wide, [&](double n) { return rounded_to(kWide, n / 3); }));
  ASSERT_TRUE(third);
  EXPECT_NEAR(third->factor, 1.0 / 3, 1e-15);
}

TEST(ValueRelation, one_element_that_differs_ends_a_relation) {
  const auto wide = numbers(DType::kFloat32);
  for (const Function& function :
       {Function([](double n) { return n * 2; }), Function([](double n) { return -n; }),
        Function([](double n) { return rounded_to(DType::kBFloat16, n); })}) {
    auto other = mapped(wide, function);
    EXPECT_TRUE(relation(DType::kFloat32, DType::kFloat32, wide, other));
    other[40] = rounded_to(DType::kFloat32, other[40] * 1.001);
    EXPECT_FALSE(relation(DType::kFloat32, DType::kFloat32, wide, other));
  }
}

TEST(ValueRelation, zeros_constants_and_few_numbers_tell_nothing) {
  constexpr auto kWide = DType::kFloat32;
  const std::vector<double> zeros(64, 0);
  const std::vector<double> ones(64, 1);
  const std::vector<double> twos(64, 2);
  const auto tiny = mapped(numbers(kWide), [](double n) { return rounded_to(kWide, n * 1e-30); });
  EXPECT_FALSE(relation(kWide, kWide, tiny, zeros));
  EXPECT_FALSE(relation(kWide, kWide, zeros, tiny));
  EXPECT_FALSE(relation(kWide, kWide, zeros, ones));
  EXPECT_FALSE(relation(kWide, kWide, ones, twos));
  EXPECT_FALSE(relation(kWide, kWide, {0.5}, {0.7}));
  EXPECT_FALSE(relation(kWide, kWide, numbers(kWide), numbers(kWide)));
}

TEST(ValueRelation, nan_and_infinity_are_carried_along) {
  auto wide = numbers(DType::kFloat32);
  wide[3] = std::nan("");
  wide[5] = std::numeric_limits<double>::infinity();
  const auto half = mapped(wide, [](double n) { return rounded_to(DType::kBFloat16, n); });
  EXPECT_TRUE(relation(DType::kFloat32, DType::kFloat32, wide, half));
}

/// True if `right` is what `left` is rounded to, according to the finder.
bool rounds(DType dtype, double left, double right) {
  std::vector<double> a;
  for (int i = 0; i < 40; ++i) a.push_back(std::ldexp(1 + (i % 4) * 0.25, i / 4 - 5));
  std::vector<double> b = a;
  a.push_back(left);
  b.push_back(right);
  const auto found = relation(DType::kFloat64, DType::kFloat64, a, b);
  return found == ValueRelation{.kind = Kind::kRounded, .dtype = dtype};
}

TEST(ValueRelation, rounding_is_to_the_nearest_and_to_even) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(rounds(DType::kBFloat16, 1 + 0x1p-8, 1));
  EXPECT_TRUE(rounds(DType::kBFloat16, 1 + 0x1.8p-7, 1 + 0x1p-6));
  EXPECT_FALSE(rounds(DType::kBFloat16, 1 + 0x1.8p-7, 1 + 0x1p-7));
  EXPECT_TRUE(rounds(DType::kFloat16, 65519, 65504));
  EXPECT_TRUE(rounds(DType::kFloat16, 65520, kInfinity));
  EXPECT_TRUE(rounds(DType::kFloat16, -0x1.8p-25, -0x1p-24));
  EXPECT_TRUE(rounds(DType::kFloat16, -0x1p-26, -0.0));
  EXPECT_FALSE(rounds(DType::kFloat16, -0x1p-26, 0.0));
  EXPECT_TRUE(rounds(DType::kFloat8E4M3FN, 0.3, 0.3125));
  EXPECT_TRUE(rounds(DType::kFloat8E4M3FN, 464, 448));
  EXPECT_TRUE(rounds(DType::kFloat8E4M3FN, 480, std::nan("")));
  EXPECT_TRUE(rounds(DType::kFloat8E5M2, -1.15, -1.25));
  EXPECT_TRUE(rounds(DType::kFloat32, 1e300, kInfinity));
}

TEST(ValueRelation, factors_are_printed_as_they_were_meant) {
  EXPECT_EQ(factor_text(2), "2");
  EXPECT_EQ(factor_text(0.5), "0.5");
  EXPECT_EQ(factor_text(static_cast<double>(0.1F)), "0.1");
  EXPECT_EQ(factor_text(-1.0 / 3), "-1/3");
}

}  // namespace
}  // namespace reprise::test::value_relation_test
