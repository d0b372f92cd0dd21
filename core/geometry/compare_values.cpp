#include "core/geometry/compare_values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/check.hpp"
#include "core/geometry/difference.hpp"

namespace reprise {
namespace {

enum class NumberKind : std::uint8_t { kUnsigned, kSigned, kReal, kComplex, kPacked };

NumberKind kind_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return NumberKind::kUnsigned;
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return NumberKind::kSigned;
    case DType::kComplex32:
    case DType::kComplex64:
    case DType::kComplex128:
      return NumberKind::kComplex;
    case DType::kFloat4E2M1FNx2:
      return NumberKind::kPacked;
    default:
      return NumberKind::kReal;
  }
}

bool is_integer(NumberKind kind) {
  return kind == NumberKind::kUnsigned || kind == NumberKind::kSigned;
}

DType larger_of(DType a, DType b) {
  if (size_of(a) == size_of(b)) return a == DType::kBool ? b : a;
  return size_of(a) < size_of(b) ? b : a;
}

/// Returns the smallest signed type that has all values of an unsigned one.
std::optional<DType> signed_above(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return DType::kInt16;
    case 2:
      return DType::kInt32;
    case 4:
      return DType::kInt64;
    default:
      return std::nullopt;
  }
}

/// float32 has every value of the other floats of up to 32 bits, and of integers of up to 16 bits.
bool fits_float32(DType dtype) {
  return is_integer(kind_of(dtype)) ? size_of(dtype) <= 2 : size_of(dtype) <= 4;
}

/// Returns the bits of a 64-bit integer with the value of the element.
std::uint64_t integer_at(DType dtype, const std::byte* element) {
  if (size_of(dtype) == 8) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, element, sizeof bits);
    return bits;
  }
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(scalar_at(dtype, element).first));
}

struct ValueDelta {
  bool differs = false;
  double delta = 0;
};

ValueDelta real_delta(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return {};
  if (std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b)) return {};
  return {true, distance(a, b)};
}

ValueDelta delta_at(TypedElements left, TypedElements right, DType type) {
  if (is_integer(kind_of(type))) {
    const std::uint64_t a = integer_at(left.dtype, left.data);
    const std::uint64_t b = integer_at(right.dtype, right.data);
    if (a == b) return {};
    if (kind_of(type) == NumberKind::kUnsigned) return {true, distance(a, b)};
    return {true, distance(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b))};
  }
  const Scalar a = scalar_at(left.dtype, left.data);
  const Scalar b = scalar_at(right.dtype, right.data);
  const ValueDelta first = real_delta(a.first, b.first);
  const ValueDelta second = real_delta(a.second, b.second);
  const bool nan = std::isnan(first.delta) || std::isnan(second.delta);
  return {first.differs || second.differs,
          nan ? std::nan("") : std::max(first.delta, second.delta)};
}

}  // namespace

std::optional<DType> exact_type_of(DType a, DType b) {
  if (a == b) return a;
  const NumberKind of_a = kind_of(a);
  const NumberKind of_b = kind_of(b);
  if (of_a == NumberKind::kPacked || of_b == NumberKind::kPacked) return std::nullopt;
  if (of_a == NumberKind::kComplex || of_b == NumberKind::kComplex) {
    return of_a == of_b ? std::optional(larger_of(a, b)) : std::nullopt;
  }
  if (is_integer(of_a) && is_integer(of_b)) {
    if (of_a == of_b) return larger_of(a, b);
    const DType without_sign = of_a == NumberKind::kUnsigned ? a : b;
    const DType with_sign = of_a == NumberKind::kUnsigned ? b : a;
    const auto least = signed_above(without_sign);
    return least ? std::optional(larger_of(*least, with_sign)) : std::nullopt;
  }
  if (fits_float32(a) && fits_float32(b)) return DType::kFloat32;
  const auto is_long = [](DType dtype) {
    return is_integer(kind_of(dtype)) && size_of(dtype) == 8;
  };
  return is_long(a) || is_long(b) ? std::nullopt : std::optional(DType::kFloat64);
}

Comparison compare_values(TypedElements left, TypedElements right, std::int64_t elements) {
  const auto type = exact_type_of(left.dtype, right.dtype);
  CHECK(type.has_value(), left.dtype, right.dtype);
  const std::size_t left_width = size_of(left.dtype);
  const std::size_t right_width = size_of(right.dtype);
  Comparison result;
  result.elements = static_cast<std::uint64_t>(elements);
  for (std::int64_t i = 0; i < elements; ++i) {
    const ValueDelta found = delta_at(left, right, *type);
    left.data += left_width;
    right.data += right_width;
    if (!found.differs) continue;
    ++result.bit_mismatches;
    if (!result.first) result.first = i;
    const bool nan = std::isnan(found.delta) || std::isnan(result.max_delta);
    result.max_delta = nan ? std::nan("") : std::max(result.max_delta, found.delta);
  }
  return result;
}

}  // namespace reprise
