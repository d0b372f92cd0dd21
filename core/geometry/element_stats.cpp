#include "core/geometry/element_stats.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "core/geometry/dtype.hpp"

namespace reprise {
namespace {

/// Sums are kept in several lanes, so that the processor adds them side by side.
constexpr std::size_t kLanes = 8;

/// Bits of a type as IEEE 754 has them. `value` converts the bits of a finite number.
struct Float64Bits {
  using Word = std::uint64_t;
  static constexpr Word kInfinity = 0x7ff0000000000000;
  static constexpr Word kLeastNormal = 0x0010000000000000;
  static double value(Word bits) { return std::bit_cast<double>(bits); }
};
struct Float32Bits {
  using Word = std::uint32_t;
  static constexpr Word kInfinity = 0x7f800000;
  static constexpr Word kLeastNormal = 0x00800000;
  static double value(Word bits) { return std::bit_cast<float>(bits); }
};
struct BFloat16Bits {
  using Word = std::uint16_t;
  static constexpr Word kInfinity = 0x7f80;
  static constexpr Word kLeastNormal = 0x0080;
  static double value(Word bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
  }
};
struct Float16Bits {
  using Word = std::uint16_t;
  static constexpr Word kInfinity = 0x7c00;
  static constexpr Word kLeastNormal = 0x0400;
  /// float32 has the same bits 13 places higher, and an exponent that is 112 larger.
  static double value(Word bits) {
    const std::uint32_t magnitude = (bits & 0x7fffU) << 13U;
    const std::uint32_t sign = (bits & 0x8000U) << 16U;
    constexpr float kScale = 0x1p112F;
    return std::bit_cast<float>(
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * kScale) | sign);
  }
};

template <class Bits>
struct Lanes {
  using Word = typename Bits::Word;
  static constexpr Word kMagnitude = static_cast<Word>(~Word{0}) >> 1U;

  std::array<std::uint64_t, kLanes> nan{};
  std::array<std::uint64_t, kLanes> infinite{};
  std::array<std::uint64_t, kLanes> zero{};
  std::array<std::uint64_t, kLanes> denormal{};
  std::array<double, kLanes> least{};
  std::array<double, kLanes> greatest{};
  std::array<double, kLanes> sum{};
  std::array<double, kLanes> squares{};

  Lanes() {
    least.fill(std::numeric_limits<double>::infinity());
    greatest.fill(-std::numeric_limits<double>::infinity());
  }

  void add(std::size_t lane, Word bits) {
    const Word magnitude = bits & kMagnitude;
    const bool finite = magnitude < Bits::kInfinity;
    nan[lane] += magnitude > Bits::kInfinity ? 1U : 0U;
    infinite[lane] += magnitude == Bits::kInfinity ? 1U : 0U;
    zero[lane] += magnitude == 0 ? 1U : 0U;
    denormal[lane] += static_cast<Word>(magnitude - 1U) < Bits::kLeastNormal - 1U ? 1U : 0U;
    const double value = Bits::value(finite ? bits : Word{0});
    sum[lane] += value;
    squares[lane] += value * value;
    const double low = finite ? value : std::numeric_limits<double>::infinity();
    const double high = finite ? value : -std::numeric_limits<double>::infinity();
    least[lane] = low < least[lane] ? low : least[lane];
    greatest[lane] = high > greatest[lane] ? high : greatest[lane];
  }

  void into(ElementStats& stats) const {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      stats.nan += nan[lane];
      stats.infinite += infinite[lane];
      stats.zero += zero[lane];
      stats.denormal += denormal[lane];
      stats.least = std::min(stats.least, least[lane]);
      stats.greatest = std::max(stats.greatest, greatest[lane]);
      stats.sum += sum[lane];
      stats.squares += squares[lane];
    }
  }
};

template <class Bits>
void add_floats(std::span<const std::byte> elements, ElementStats& stats) {
  using Word = typename Bits::Word;
  Lanes<Bits> lanes;
  const std::size_t count = elements.size() / sizeof(Word);
  std::array<Word, kLanes> words{};
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    std::memcpy(words.data(), elements.data() + at * sizeof(Word), sizeof words);
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes.add(lane, words[lane]);
  }
  for (; at < count; ++at) {
    std::memcpy(words.data(), elements.data() + at * sizeof(Word), sizeof(Word));
    lanes.add(0, words[0]);
  }
  stats.numbers += count;
  lanes.into(stats);
}

void add_number(double value, std::uint64_t count, ElementStats& stats) {
  stats.numbers += count;
  if (std::isnan(value)) {
    stats.nan += count;
  } else if (std::isinf(value)) {
    stats.infinite += count;
  } else {
    if (value == 0) stats.zero += count;
    stats.least = std::min(stats.least, value);
    stats.greatest = std::max(stats.greatest, value);
    stats.sum += value * static_cast<double>(count);
    stats.squares += value * value * static_cast<double>(count);
  }
}

bool has_two_numbers(DType dtype) {
  return dtype == DType::kComplex32 || dtype == DType::kComplex64 || dtype == DType::kComplex128 ||
         dtype == DType::kFloat4E2M1FNx2;
}

/// Adds elements of one byte: each of the 256 values is decoded once.
void add_bytes(DType dtype, std::span<const std::byte> elements, ElementStats& stats) {
  std::array<std::uint64_t, 256> counts{};
  for (const std::byte element : elements) ++counts[std::to_integer<std::size_t>(element)];
  for (std::size_t value = 0; value < counts.size(); ++value) {
    if (counts[value] == 0) continue;
    const auto element = static_cast<std::byte>(value);
    const Scalar scalar = scalar_at(dtype, &element);
    add_number(scalar.first, counts[value], stats);
    if (has_two_numbers(dtype)) add_number(scalar.second, counts[value], stats);
  }
}

}  // namespace

double ElementStats::mean() const { return sum / static_cast<double>(finite()); }
double ElementStats::norm() const { return std::sqrt(squares); }
double ElementStats::absolute() const {
  return finite() == 0 ? 0 : std::max(std::abs(least), std::abs(greatest));
}

void ElementStats::add(DType dtype, std::span<const std::byte> elements) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return add_floats<Float64Bits>(elements, *this);
    case DType::kFloat32:
    case DType::kComplex64:
      return add_floats<Float32Bits>(elements, *this);
    case DType::kFloat16:
    case DType::kComplex32:
      return add_floats<Float16Bits>(elements, *this);
    case DType::kBFloat16:
      return add_floats<BFloat16Bits>(elements, *this);
    default:
      break;
  }
  const std::size_t width = size_of(dtype);
  if (width == 1) return add_bytes(dtype, elements, *this);
  for (std::size_t at = 0; at + width <= elements.size(); at += width) {
    add_number(scalar_at(dtype, elements.data() + at).first, 1, *this);
  }
}

void ElementStats::add(const ElementStats& other) {
  numbers += other.numbers;
  nan += other.nan;
  infinite += other.infinite;
  zero += other.zero;
  denormal += other.denormal;
  least = std::min(least, other.least);
  greatest = std::max(greatest, other.greatest);
  sum += other.sum;
  squares += other.squares;
}

}  // namespace reprise
