#include "core/geometry/compare.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <sstream>
#include <type_traits>

namespace reprise {
namespace {

constexpr std::int64_t kBlock = 4096;  // elements whose equality is decided by one memcmp

double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
}

/// |a - b|, where equal infinities (of one sign) are 0 apart.
double distance(double a, double b) { return a == b ? 0 : std::fabs(a - b); }

template <class Bits>
Bits bits_at(const std::byte* place) {
  Bits bits;
  std::memcpy(&bits, place, sizeof bits);
  return bits;
}

/// Values of the number that an element, or a part of a complex one, is.
template <class Number>
struct Plain {
  using Bits = std::conditional_t<
      sizeof(Number) == 8, std::uint64_t,
      std::conditional_t<sizeof(Number) == 4, std::uint32_t,
                         std::conditional_t<sizeof(Number) == 2, std::uint16_t, std::uint8_t>>>;
  double operator()(Bits bits) const { return static_cast<double>(std::bit_cast<Number>(bits)); }
};

struct Bfloat16 {
  using Bits = std::uint16_t;
  double operator()(Bits bits) const { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }
};

struct Half {
  using Bits = std::uint16_t;
  double operator()(Bits bits) const {
    const std::uint32_t sign = (bits & 0x8000U) << 16U;
    const std::uint32_t rest = (bits & 0x7fffU) << 13U;
    constexpr std::uint32_t kInfinity = 0x7c00U << 13U;
    if (rest >= kInfinity) return std::bit_cast<float>(sign | 0x7f800000U | (rest - kInfinity));
    // As a float the exponent is 127 - 15 too small, also that of a subnormal number.
    return std::bit_cast<float>(sign | rest) * 0x1p112F;
  }
};

/// Numbers of one byte that scalar_at() takes apart.
struct Tabled {
  using Bits = std::uint8_t;
  std::array<double, 256> values;

  explicit Tabled(DType dtype) : values() {
    for (unsigned bits = 0; bits < values.size(); ++bits) {
      const auto element = static_cast<std::byte>(bits);
      values[bits] = scalar_at(dtype, &element).real;
    }
  }
  double operator()(Bits bits) const { return values[bits]; }
};

/// Adds what differs in elements [begin, end), each of `parts` numbers.
template <std::size_t parts, class Value>
void compare_block(const std::byte* left, const std::byte* right, std::int64_t begin,
                   std::int64_t end, const Value& value, Comparison& result) {
  using Bits = typename Value::Bits;
  double largest = 0;
  bool nan = false;
  std::uint64_t mismatches = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * parts * sizeof(Bits);
    bool differs = false;
    double delta = 0;
    bool undefined = false;
    for (std::size_t part = 0; part < parts; ++part) {
      const auto a = bits_at<Bits>(left + at + part * sizeof(Bits));
      const auto b = bits_at<Bits>(right + at + part * sizeof(Bits));
      const double between = distance(value(a), value(b));
      differs |= a != b;
      undefined |= std::isnan(between);
      delta = between > delta ? between : delta;
    }
    if (!differs) continue;
    if (++mismatches == 1 && !result.first) result.first = i;
    nan |= undefined;
    largest = delta > largest ? delta : largest;
  }
  result.bit_mismatches += mismatches;
  result.max_delta = larger(result.max_delta, nan ? std::nan("") : largest);
}

using CompareBlock = std::function<void(std::int64_t, std::int64_t, Comparison&)>;

template <std::size_t parts, class Value>
CompareBlock comparer(const std::byte* left, const std::byte* right, const Value& value) {
  return [=](std::int64_t begin, std::int64_t end, Comparison& result) {
    compare_block<parts>(left, right, begin, end, value, result);
  };
}

CompareBlock comparer_of(DType dtype, const std::byte* left, const std::byte* right) {
  switch (dtype) {
    case DType::kFloat64:
      return comparer<1>(left, right, Plain<double>());
    case DType::kFloat32:
      return comparer<1>(left, right, Plain<float>());
    case DType::kFloat16:
      return comparer<1>(left, right, Half());
    case DType::kBFloat16:
      return comparer<1>(left, right, Bfloat16());
    case DType::kInt64:
      return comparer<1>(left, right, Plain<std::int64_t>());
    case DType::kInt32:
      return comparer<1>(left, right, Plain<std::int32_t>());
    case DType::kInt16:
      return comparer<1>(left, right, Plain<std::int16_t>());
    case DType::kUInt64:
      return comparer<1>(left, right, Plain<std::uint64_t>());
    case DType::kUInt32:
      return comparer<1>(left, right, Plain<std::uint32_t>());
    case DType::kUInt16:
      return comparer<1>(left, right, Plain<std::uint16_t>());
    case DType::kComplex128:
      return comparer<2>(left, right, Plain<double>());
    case DType::kComplex64:
      return comparer<2>(left, right, Plain<float>());
    case DType::kComplex32:
      return comparer<2>(left, right, Half());
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0FNU:
    case DType::kFloat4E2M1FNx2:
      break;
  }
  return comparer<1>(left, right, Tabled(dtype));
}

}  // namespace

void Comparison::append(const Comparison& next) {
  if (!first && next.first) first = static_cast<std::int64_t>(elements) + *next.first;
  elements += next.elements;
  bit_mismatches += next.bit_mismatches;
  max_delta = larger(max_delta, next.max_delta);
}

Comparison compare_elements(DType dtype, const std::byte* left, const std::byte* right,
                            std::int64_t elements) {
  Comparison result;
  result.elements = static_cast<std::uint64_t>(elements);
  const std::size_t width = size_of(dtype);
  CompareBlock compare;
  for (std::int64_t begin = 0; begin < elements; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, elements);
    const std::size_t at = static_cast<std::size_t>(begin) * width;
    const std::size_t bytes = static_cast<std::size_t>(end - begin) * width;
    if (std::memcmp(left + at, right + at, bytes) == 0) continue;
    if (!compare) compare = comparer_of(dtype, left, right);
    compare(begin, end, result);
  }
  return result;
}

std::string print_element(DType dtype, const std::byte* element) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const Scalar scalar = scalar_at(dtype, element);
  std::ostringstream out;
  out.precision(17);
  out << scalar.real;
  if (scalar.imaginary != 0) out << (scalar.imaginary > 0 ? "+" : "") << scalar.imaginary << 'j';
  out << " (0x";
  for (std::size_t i = size_of(dtype); i-- > 0;) {
    const auto byte = std::to_integer<unsigned>(element[i]);
    out << kDigits[byte >> 4U] << kDigits[byte & 15U];
  }
  out << ')';
  return out.str();
}

}  // namespace reprise
