#pragma once
// Computes the difference of two elements, for comparisons on the host and in kernels.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/execution_space.hpp"
#include "core/geometry/block16.hpp"
#include "core/geometry/compare.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {

/// Returns |a - b|. Infinities of the same sign are 0 apart.
REPRISE_HD inline double distance(double a, double b) { return a == b ? 0 : std::fabs(a - b); }

/// Returns |a - b|. Only the result is rounded to a double, so it is never 0 for unequal integers.
REPRISE_HD inline double distance(std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(a > b ? a - b : b - a);
}
REPRISE_HD inline double distance(std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  return static_cast<double>(a > b ? x - y : y - x);
}

/// The two values in one byte of float4_e2m1fn_x2.
struct Float4Pair {
  double low = 0;
  double high = 0;
};
/// Returns the difference of the low values or of the high values, whichever is larger.
REPRISE_HD inline double distance(Float4Pair a, Float4Pair b) {
  const double low = distance(a.low, b.low);
  const double high = distance(a.high, b.high);
  return low > high ? low : high;
}

/// Converts the bits of a number to its value. The number is an element, or one of the two parts of
/// a complex element. 64-bit integers stay integers, because a double cannot represent all of them.
template <class Number>
struct PlainValue {
  using Result =
      std::conditional_t<std::is_integral_v<Number> && sizeof(Number) == 8, Number, double>;
  using Bits = std::conditional_t<
      sizeof(Number) == 8, std::uint64_t,
      std::conditional_t<sizeof(Number) == 4, std::uint32_t,
                         std::conditional_t<sizeof(Number) == 2, std::uint16_t, std::uint8_t>>>;
  REPRISE_HD Result operator()(Bits bits) const {
    return static_cast<Result>(std::bit_cast<Number>(bits));
  }
};

struct Bfloat16Value {
  using Bits = std::uint16_t;
  REPRISE_HD double operator()(Bits bits) const {
    return std::bit_cast<float>(std::uint32_t{bits} << 16U);
  }
};

struct HalfValue {
  using Bits = std::uint16_t;
  REPRISE_HD double operator()(Bits bits) const {
    const std::uint32_t sign = (bits & 0x8000U) << 16U;
    const std::uint32_t rest = (bits & 0x7fffU) << 13U;
    constexpr std::uint32_t kInfinity = 0x7c00U << 13U;
    if (rest >= kInfinity) return std::bit_cast<float>(sign | 0x7f800000U | (rest - kInfinity));
    // The bits now have the layout of a float, but still the exponent bias of a half, which is 15
    // instead of 127. The number that they represent is therefore too small by a factor of 2^112,
    // subnormal numbers included.
    return std::bit_cast<float>(sign | rest) * 0x1p112F;
  }
};

/// A precomputed table of the values of all one-byte numbers, decoded by scalar_at().
struct TabledValue {
  using Bits = std::uint8_t;
  double values[256];

  explicit TabledValue(DType dtype);
  REPRISE_HD double operator()(Bits bits) const { return values[bits]; }
};

/// A precomputed table of the value pairs of all bytes of float4_e2m1fn_x2.
struct Float4PairValue {
  using Bits = std::uint8_t;
  Float4Pair values[256];

  Float4PairValue();
  REPRISE_HD Float4Pair operator()(Bits bits) const { return values[bits]; }
};

/// Calls visit(value, parts) for an element type. `value` converts bits to numbers. `parts` is how
/// many such numbers one element has, 1 or 2, as a std::integral_constant.
template <class Visit>
decltype(auto) with_value_of(DType dtype, Visit&& visit) {
  using One = std::integral_constant<std::size_t, 1>;
  using Two = std::integral_constant<std::size_t, 2>;
  switch (dtype) {
    case DType::kFloat64:
      return visit(PlainValue<double>(), One());
    case DType::kFloat32:
      return visit(PlainValue<float>(), One());
    case DType::kFloat16:
      return visit(HalfValue(), One());
    case DType::kBFloat16:
      return visit(Bfloat16Value(), One());
    case DType::kInt64:
      return visit(PlainValue<std::int64_t>(), One());
    case DType::kInt32:
      return visit(PlainValue<std::int32_t>(), One());
    case DType::kInt16:
      return visit(PlainValue<std::int16_t>(), One());
    case DType::kUInt64:
      return visit(PlainValue<std::uint64_t>(), One());
    case DType::kUInt32:
      return visit(PlainValue<std::uint32_t>(), One());
    case DType::kUInt16:
      return visit(PlainValue<std::uint16_t>(), One());
    case DType::kComplex128:
      return visit(PlainValue<double>(), Two());
    case DType::kComplex64:
      return visit(PlainValue<float>(), Two());
    case DType::kComplex32:
      return visit(HalfValue(), Two());
    case DType::kFloat4E2M1FNx2:
      return visit(Float4PairValue(), One());
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0FNU:
      break;
  }
  return visit(TabledValue(dtype), One());
}

struct Difference {
  bool differs = false;    ///< true if any bit differs
  bool undefined = false;  ///< true if one side is NaN, or if both are NaN with different bits
  double delta = 0;        ///< largest difference of the element's numbers; invalid if `undefined`
};

/// Compares the element at `left` with the element at `right`. An element consists of `parts`
/// numbers. The addresses may have any alignment.
template <std::size_t parts, class Value>
REPRISE_HD inline Difference difference_at(const std::byte* left, const std::byte* right,
                                           const Value& value) {
  using Bits = typename Value::Bits;
  bool differs = false;
  bool undefined = false;
  double delta = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    Bits a;
    Bits b;
    std::memcpy(&a, left + part * sizeof a, sizeof a);
    std::memcpy(&b, right + part * sizeof b, sizeof b);
    const double between = distance(value(a), value(b));
    differs |= a != b;
    undefined |= std::isnan(between);
    delta = between > delta ? between : delta;
  }
  return {differs, undefined, delta};
}

/// The sum of many differences. It does not depend on the order in which they are added.
struct DifferenceSum {
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t mismatches = 0;
  /// Bits of max_delta. The bit patterns of non-negative doubles have the same order as the doubles
  /// themselves. The only NaN used here has a larger bit pattern than infinity.
  std::uint64_t delta_bits = 0;
  std::uint64_t first = kNone;  ///< index of the first mismatch

  REPRISE_HD void add(const Difference& difference, std::uint64_t index) {
    if (!difference.differs) return;
    const double delta =
        difference.undefined ? std::numeric_limits<double>::quiet_NaN() : difference.delta;
    add(DifferenceSum{1, std::bit_cast<std::uint64_t>(delta), index});
  }
  REPRISE_HD void add(const DifferenceSum& other) {
    mismatches += other.mismatches;
    delta_bits = other.delta_bits > delta_bits ? other.delta_bits : delta_bits;
    first = other.first < first ? other.first : first;
  }
};

/// Two runs of elements, divided into blocks of 16 bytes. In a comparison kernel with n threads,
/// each thread handles every n-th block. Blocks that are equal are not examined further.
template <std::size_t parts, class Value>
struct CompareBlocks {
  const std::byte* left;
  const std::byte* right;
  std::int64_t bytes;  ///< size of each side in bytes; a whole number of elements
  Value value;

  static constexpr auto kWidth = static_cast<std::int64_t>(parts * sizeof(typename Value::Bits));

  /// Returns the number of blocks; the last one may be shorter than 16 bytes.
  REPRISE_HD std::int64_t blocks() const { return (bytes + kBlockBytes - 1) / kBlockBytes; }
  REPRISE_HD std::int64_t whole_blocks() const { return bytes / kBlockBytes; }
  /// True if the blocks of both sides begin at 16-byte boundaries.
  REPRISE_HD bool aligned() const { return (lead_of(left) | lead_of(right)) == 0; }
  /// True if a whole block is equal on both sides. Both sides must be aligned.
  REPRISE_HD bool equal(std::int64_t block) const {
    return reinterpret_cast<const Block16*>(left)[block] ==
           reinterpret_cast<const Block16*>(right)[block];
  }

  /// Compares one block at any alignment and adds its differences to `sum`.
  REPRISE_HD void add(std::int64_t block, DifferenceSum& sum) const {
    const std::int64_t at = block * kBlockBytes;
    const std::int64_t size = bytes - at < kBlockBytes ? bytes - at : kBlockBytes;
    const Block16 a = load(left, at, size);
    const Block16 b = load(right, at, size);
    if (a == b) return;
    const auto* one = reinterpret_cast<const std::byte*>(&a);
    const auto* other = reinterpret_cast<const std::byte*>(&b);
    for (std::int64_t i = 0; i < size; i += kWidth) {
      sum.add(difference_at<parts>(one + i, other + i, value),
              static_cast<std::uint64_t>((at + i) / kWidth));
    }
  }

  /// Compares `count` blocks that are `step` apart and adds their differences to `sum`.
  template <int count>
  REPRISE_HD void add_some(std::int64_t block, std::int64_t step, DifferenceSum& sum) const {
    bool same = true;
    // Loads and compares all blocks before the only branch, so that the loads need not wait for one
    // another.
    for (int k = 0; k < count; ++k) same &= equal(block + k * step);
    if (same) return;
    for (int k = 0; k < count; ++k) add(block + k * step, sum);
  }

  /// Returns the sum for the blocks of one thread, number `thread` of `threads`.
  REPRISE_HD DifferenceSum sum_of(std::int64_t thread, std::int64_t threads) const {
    constexpr int kAtOnce = 4;
    DifferenceSum sum;
    std::int64_t block = thread;
    if (aligned()) {
      for (; block + (kAtOnce - 1) * threads < whole_blocks(); block += kAtOnce * threads) {
        add_some<kAtOnce>(block, threads, sum);
      }
    }
    for (; block < blocks(); block += threads) add(block, sum);
    return sum;
  }

 private:
  REPRISE_HD Block16 load(const std::byte* side, std::int64_t at, std::int64_t size) const {
    if (size < kBlockBytes) return load_bytes(side + at, size);
    return load_block(side + at, {side, side + bytes});
  }
};

/// Converts the sum over all elements to a Comparison.
Comparison comparison_of(const DifferenceSum& sum, std::int64_t elements);

}  // namespace reprise
