#include "core/geometry/compare.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <sstream>

#include "core/geometry/difference.hpp"

namespace reprise {
namespace {

constexpr std::int64_t kBlock = 4096;  // elements compared by one memcmp

double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
}

/// Compares elements [begin, end), which have `parts` numbers each, and adds the differences to
/// `result`.
template <std::size_t parts, class Value>
void compare_block(const std::byte* left, const std::byte* right, std::int64_t begin,
                   std::int64_t end, const Value& value, Comparison& result) {
  constexpr std::size_t kWidth = parts * sizeof(typename Value::Bits);
  double largest = 0;
  bool nan = false;
  std::uint64_t mismatches = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * kWidth;
    const auto [differs, undefined, delta] = difference_at<parts>(left + at, right + at, value);
    if (!differs) continue;
    if (++mismatches == 1 && !result.first) result.first = i;
    nan |= undefined;
    largest = delta > largest ? delta : largest;
  }
  result.bit_mismatches += mismatches;
  result.max_delta = larger(result.max_delta, nan ? std::nan("") : largest);
}

using CompareBlock = std::function<void(std::int64_t, std::int64_t, Comparison&)>;

CompareBlock comparer_of(DType dtype, const std::byte* left, const std::byte* right) {
  return with_value_of(dtype, [=](const auto& value, auto parts) -> CompareBlock {
    return [=](std::int64_t begin, std::int64_t end, Comparison& result) {
      compare_block<parts()>(left, right, begin, end, value, result);
    };
  });
}

template <class Number>
Number number_at(const std::byte* element) {
  Number number;
  std::memcpy(&number, element, sizeof number);
  return number;
}

void print_value(std::ostream& out, DType dtype, const std::byte* element) {
  if (dtype == DType::kInt64) {
    out << number_at<std::int64_t>(element);
    return;
  }
  if (dtype == DType::kUInt64) {
    out << number_at<std::uint64_t>(element);
    return;
  }
  const auto [first, second] = scalar_at(dtype, element);
  if (dtype == DType::kFloat4E2M1FNx2) {
    out << '[' << first << ", " << second << ']';
    return;
  }
  out << first;
  if (second != 0) out << (second > 0 ? "+" : "") << second << 'j';
}

}  // namespace

TabledValue::TabledValue(DType dtype) : values() {
  for (unsigned bits = 0; bits < std::size(values); ++bits) {
    const auto element = static_cast<std::byte>(bits);
    values[bits] = scalar_at(dtype, &element).first;
  }
}

Float4PairValue::Float4PairValue() : values() {
  for (unsigned bits = 0; bits < std::size(values); ++bits) {
    const auto element = static_cast<std::byte>(bits);
    const Scalar scalar = scalar_at(DType::kFloat4E2M1FNx2, &element);
    values[bits] = {scalar.first, scalar.second};
  }
}

Comparison comparison_of(const DifferenceSum& sum, std::int64_t elements) {
  Comparison result;
  result.elements = static_cast<std::uint64_t>(elements);
  result.bit_mismatches = sum.mismatches;
  result.max_delta = std::bit_cast<double>(sum.delta_bits);
  if (sum.mismatches > 0) result.first = static_cast<std::int64_t>(sum.first);
  return result;
}

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
  std::ostringstream out;
  out.precision(17);
  print_value(out, dtype, element);
  out << " (0x";
  for (std::size_t i = size_of(dtype); i-- > 0;) {
    const auto byte = std::to_integer<unsigned>(element[i]);
    out << kDigits[byte >> 4U] << kDigits[byte & 15U];
  }
  out << ')';
  return out.str();
}

}  // namespace reprise
