#include "core/geometry/dtype.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/base/check.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

struct Row {
  DType dtype;
  std::size_t size;
  std::string_view name;
};

constexpr std::array kRows = {
    Row{DType::kFloat64, 8, "float64"},
    Row{DType::kFloat32, 4, "float32"},
    Row{DType::kFloat16, 2, "float16"},
    Row{DType::kBFloat16, 2, "bfloat16"},
    Row{DType::kFloat8E4M3FN, 1, "float8_e4m3fn"},
    Row{DType::kFloat8E5M2, 1, "float8_e5m2"},
    Row{DType::kFloat8E4M3FNUZ, 1, "float8_e4m3fnuz"},
    Row{DType::kFloat8E5M2FNUZ, 1, "float8_e5m2fnuz"},
    Row{DType::kFloat8E8M0FNU, 1, "float8_e8m0fnu"},
    Row{DType::kFloat4E2M1FNx2, 1, "float4_e2m1fn_x2"},
    Row{DType::kInt64, 8, "int64"},
    Row{DType::kInt32, 4, "int32"},
    Row{DType::kInt16, 2, "int16"},
    Row{DType::kInt8, 1, "int8"},
    Row{DType::kUInt64, 8, "uint64"},
    Row{DType::kUInt32, 4, "uint32"},
    Row{DType::kUInt16, 2, "uint16"},
    Row{DType::kUInt8, 1, "uint8"},
    Row{DType::kBool, 1, "bool"},
    Row{DType::kComplex128, 16, "complex128"},
    Row{DType::kComplex64, 8, "complex64"},
    Row{DType::kComplex32, 4, "complex32"},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].dtype) != i) return false;
  }
  return true;
}
static_assert(is_in_order());

const Row& row_of(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  if (index < kRows.size()) return kRows[index];
  throw Error(Code::kUsage, "dtype: " + std::to_string(index) +
                                " is not an element type; element types are 0 to " +
                                std::to_string(kRows.size() - 1));
}

template <class T>
T read(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

/// Bit layout of a small float. `top` says which bit patterns are infinities and NaNs; formats of
/// the "fn" kind have no infinity.
struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  enum class Top { kIeee, kNanOnly, kUnsignedZeroNan, kFinite } top;
};

double decode(std::uint32_t bits, const SmallFloat& f) {
  const int width = 1 + f.exponent_bits + f.mantissa_bits;
  const std::uint32_t sign = bits >> static_cast<unsigned>(width - 1);
  const std::uint32_t exponent_top = (1U << static_cast<unsigned>(f.exponent_bits)) - 1U;
  const std::uint32_t mantissa_top = (1U << static_cast<unsigned>(f.mantissa_bits)) - 1U;
  const std::uint32_t exponent = (bits >> static_cast<unsigned>(f.mantissa_bits)) & exponent_top;
  const std::uint32_t mantissa = bits & mantissa_top;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double signed_one = sign != 0 ? -1.0 : 1.0;
  switch (f.top) {
    case SmallFloat::Top::kIeee:
      if (exponent == exponent_top) return mantissa == 0 ? signed_one * kInfinity : kNan;
      break;
    case SmallFloat::Top::kNanOnly:
      if (exponent == exponent_top && mantissa == mantissa_top) return kNan;
      break;
    case SmallFloat::Top::kUnsignedZeroNan:
      if (sign == 1 && exponent == 0 && mantissa == 0) return kNan;
      break;
    case SmallFloat::Top::kFinite:
      break;
  }
  const double fraction = std::ldexp(static_cast<double>(mantissa), -f.mantissa_bits);
  if (exponent == 0) return signed_one * std::ldexp(fraction, 1 - f.bias);
  return signed_one * std::ldexp(1.0 + fraction, static_cast<int>(exponent) - f.bias);
}

constexpr SmallFloat kHalf{5, 10, 15, SmallFloat::Top::kIeee};
constexpr SmallFloat kE4M3FN{4, 3, 7, SmallFloat::Top::kNanOnly};
constexpr SmallFloat kE5M2{5, 2, 15, SmallFloat::Top::kIeee};
constexpr SmallFloat kE4M3FNUZ{4, 3, 8, SmallFloat::Top::kUnsignedZeroNan};
constexpr SmallFloat kE5M2FNUZ{5, 2, 16, SmallFloat::Top::kUnsignedZeroNan};
constexpr SmallFloat kE2M1FN{2, 1, 1, SmallFloat::Top::kFinite};

double bfloat16(const std::byte* element) {
  const std::uint32_t bits = static_cast<std::uint32_t>(read<std::uint16_t>(element)) << 16U;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

std::size_t size_of(DType dtype) { return row_of(dtype).size; }
std::string_view name_of(DType dtype) { return row_of(dtype).name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (const auto& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::span<const DType> all_dtypes() {
  static constexpr auto kAll = [] {
    std::array<DType, kRows.size()> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = kRows[i].dtype;
    return all;
  }();
  return kAll;
}

Scalar scalar_at(DType dtype, const std::byte* element) {
  const auto real = [](auto value) { return Scalar{static_cast<double>(value), 0}; };
  const auto byte = std::to_integer<std::uint32_t>(element[0]);
  switch (dtype) {
    case DType::kFloat64:
      return real(read<double>(element));
    case DType::kFloat32:
      return real(read<float>(element));
    case DType::kFloat16:
      return real(decode(read<std::uint16_t>(element), kHalf));
    case DType::kBFloat16:
      return real(bfloat16(element));
    case DType::kFloat8E4M3FN:
      return real(decode(byte, kE4M3FN));
    case DType::kFloat8E5M2:
      return real(decode(byte, kE5M2));
    case DType::kFloat8E4M3FNUZ:
      return real(decode(byte, kE4M3FNUZ));
    case DType::kFloat8E5M2FNUZ:
      return real(decode(byte, kE5M2FNUZ));
    case DType::kFloat8E8M0FNU:
      if (byte == 255) return real(std::numeric_limits<double>::quiet_NaN());
      return real(std::ldexp(1.0, static_cast<int>(byte) - 127));
    case DType::kInt64:
      return real(read<std::int64_t>(element));
    case DType::kInt32:
      return real(read<std::int32_t>(element));
    case DType::kInt16:
      return real(read<std::int16_t>(element));
    case DType::kInt8:
      return real(read<std::int8_t>(element));
    case DType::kUInt64:
      return real(read<std::uint64_t>(element));
    case DType::kUInt32:
      return real(read<std::uint32_t>(element));
    case DType::kUInt16:
      return real(read<std::uint16_t>(element));
    case DType::kUInt8:
    case DType::kBool:
      return real(byte);
    case DType::kFloat4E2M1FNx2:
      return {decode(byte & 15U, kE2M1FN), decode(byte >> 4U, kE2M1FN)};
    case DType::kComplex128:
      return {read<double>(element), read<double>(element + 8)};
    case DType::kComplex64:
      return {read<float>(element), read<float>(element + 4)};
    case DType::kComplex32:
      return {decode(read<std::uint16_t>(element), kHalf),
              decode(read<std::uint16_t>(element + 2), kHalf)};
  }
  CHECK(false, static_cast<int>(dtype));
  return {};
}

bool can_flip(DType dtype, SignFlips flips) {
  switch (dtype) {
    case DType::kComplex128:
    case DType::kComplex64:
    case DType::kComplex32:
      return true;
    case DType::kFloat64:
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
      return !flips.conjugate;
    default:
      return !flips.any();
  }
}

void flip_signs(DType dtype, std::span<std::byte> elements, SignFlips flips) {
  CHECK(can_flip(dtype, flips), dtype);
  const bool complex = can_flip(dtype, {.conjugate = true, .negate = false});
  const std::size_t part = complex ? size_of(dtype) / 2 : size_of(dtype);
  const bool real = flips.negate;
  const bool imaginary = flips.conjugate != flips.negate;
  bool in_imaginary = false;
  for (std::size_t end = part; end <= elements.size(); end += part) {
    if (in_imaginary ? imaginary : real) elements[end - 1] ^= std::byte{0x80};
    in_imaginary = complex && !in_imaginary;
  }
}

}  // namespace reprise
