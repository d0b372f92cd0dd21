#include "core/geometry/convert.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/base/bytes.hpp"
#include "core/base/check.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {
namespace {

constexpr std::array kFloats = {DType::kFloat64, DType::kFloat32, DType::kFloat16,
                                DType::kBFloat16};

bool is_float(DType dtype) {
  return std::find(kFloats.begin(), kFloats.end(), dtype) != kFloats.end();
}

/// Rounds to a binary format of 16 bits with `mantissa` bits behind the leading one.
std::uint16_t rounded(double value, int mantissa, int exponent_min, int exponent_max) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000U : 0U);
  const auto infinite = static_cast<std::uint16_t>((exponent_max - exponent_min + 2) << mantissa);
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | infinite | (1U << (mantissa - 1)));
  }
  const double size = std::fabs(value);
  if (size == 0) return sign;
  if (std::isinf(size)) return static_cast<std::uint16_t>(sign | infinite);
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = std::max(exponent - 1, exponent_min);
  // In units of the last place: an integer once it is rounded, half to even.
  const double units = std::nearbyint(std::ldexp(size, mantissa - exponent));
  // A carry into the next power of two falls into place by adding; so does an overflow.
  const double bits = std::ldexp(static_cast<double>(exponent - exponent_min), mantissa) + units;
  return static_cast<std::uint16_t>(
      sign | static_cast<std::uint16_t>(std::min(bits, static_cast<double>(infinite))));
}

template <class T>
void put(T value, std::byte* out) {
  std::memcpy(out, &value, sizeof value);
}

void put_as(DType to, double value, std::byte* out) {
  switch (to) {
    case DType::kFloat64:
      return put(value, out);
    case DType::kFloat32:
      return put(static_cast<float>(value), out);
    case DType::kFloat16:
      return put(rounded(value, 10, -14, 15), out);
    default:
      return put(rounded(value, 7, -126, 127), out);
  }
}

/// Does what rounded() does, for the bits of a float32 and bfloat16, which is its upper half.
std::uint16_t upper_half_of(std::uint32_t bits) {
  constexpr std::uint32_t kInfinite = 0x7f800000U;
  constexpr std::uint32_t kNoNumber = 0x7fc0U;
  if ((bits & ~0x80000000U) > kInfinite) {
    return static_cast<std::uint16_t>(((bits >> 16U) & 0x8000U) | kNoNumber);
  }
  // Adds less than half of the last place to an even number, and half to an odd one.
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

/// Converts each element by `one`, from the bits of one type to those of another.
template <class From, class To, class One>
void convert_each(ByteSpan in, std::byte* out, const One& one) {
  for (std::size_t at = 0; at < in.size(); at += sizeof(From), out += sizeof(To)) {
    From bits{};
    std::memcpy(&bits, in.data() + at, sizeof bits);
    put(static_cast<To>(one(bits)), out);
  }
}

}  // namespace

bool can_convert(DType from, DType to) { return from == to || (is_float(from) && is_float(to)); }

void convert(DType from, std::span<const std::byte> in, DType to, std::byte* out) {
  CHECK(can_convert(from, to));
  if (from == to) {
    std::copy(in.begin(), in.end(), out);
    return;
  }
  // The usual conversions, which must not be slower than reading and writing.
  if (from == DType::kFloat32 && to == DType::kBFloat16) {
    return convert_each<std::uint32_t, std::uint16_t>(in, out, upper_half_of);
  }
  if (from == DType::kBFloat16 && to == DType::kFloat32) {
    return convert_each<std::uint16_t, std::uint32_t>(
        in, out, [](std::uint32_t bits) { return bits << 16U; });
  }
  const std::size_t step = size_of(from);
  for (std::size_t at = 0; at < in.size(); at += step, out += size_of(to)) {
    put_as(to, scalar_at(from, in.data() + at).first, out);
  }
}

}  // namespace reprise
