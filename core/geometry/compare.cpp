#include "core/geometry/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

namespace reprise {
namespace {

constexpr std::int64_t kBlock = 4096;  // elements whose equality is decided by one memcmp

double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
}

/// |a - b|, where equal infinities (of one sign) are 0 apart.
double distance(double a, double b) { return a == b ? 0 : std::fabs(a - b); }

double delta(DType dtype, const std::byte* left, const std::byte* right) {
  const Scalar a = scalar_at(dtype, left);
  const Scalar b = scalar_at(dtype, right);
  return larger(distance(a.real, b.real), distance(a.imaginary, b.imaginary));
}

void compare_block(DType dtype, const std::byte* left, const std::byte* right, std::int64_t begin,
                   std::int64_t end, Comparison& result) {
  const std::size_t width = size_of(dtype);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::byte* a = left + static_cast<std::size_t>(i) * width;
    const std::byte* b = right + static_cast<std::size_t>(i) * width;
    if (std::memcmp(a, b, width) == 0) continue;
    ++result.bit_mismatches;
    result.max_delta = larger(result.max_delta, delta(dtype, a, b));
    if (!result.first) result.first = i;
  }
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
  for (std::int64_t begin = 0; begin < elements; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, elements);
    const std::size_t at = static_cast<std::size_t>(begin) * width;
    const std::size_t bytes = static_cast<std::size_t>(end - begin) * width;
    if (std::memcmp(left + at, right + at, bytes) == 0) continue;
    compare_block(dtype, left, right, begin, end, result);
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
