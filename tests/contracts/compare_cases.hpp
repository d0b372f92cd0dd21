#pragma once
// Lists cases for tests of comparisons; each case has two runs of elements. The results must be the
// same from the CPU's loops, from the kernel's code run on the host, and from a device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "core/geometry/compare.hpp"

namespace reprise::contracts {

struct CompareCase {
  std::string name;
  DType dtype;
  Bytes left;
  Bytes right;
  std::size_t left_lead = 0;  ///< bytes between a 16-byte boundary and the first element
  std::size_t right_lead = 0;

  std::int64_t elements() const { return static_cast<std::int64_t>(left.size() / size_of(dtype)); }
};

/// Computes the result that the contract of comparisons requires, element by element.
inline Comparison compared_by_definition(DType dtype, const Bytes& left, const Bytes& right) {
  const auto larger = [](double a, double b) {
    return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
  };
  const auto apart = [](auto a, auto b) {
    return a == b ? 0 : std::fabs(static_cast<double>(a - b));
  };
  // A double can't represent every 64-bit integer, but a long double on x87 can.
  const auto integer = [dtype](const std::byte* at) -> long double {
    std::int64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    if (dtype == DType::kInt64) return static_cast<long double>(value);
    return static_cast<long double>(static_cast<std::uint64_t>(value));
  };
  Comparison result;
  const std::size_t width = size_of(dtype);
  for (std::size_t i = 0; i * width < left.size(); ++i) {
    ++result.elements;
    const std::byte* a = left.data() + i * width;
    const std::byte* b = right.data() + i * width;
    if (std::equal(a, a + width, b)) continue;
    ++result.bit_mismatches;
    if (dtype == DType::kInt64 || dtype == DType::kUInt64) {
      result.max_delta = larger(result.max_delta, apart(integer(a), integer(b)));
    } else {
      const Scalar x = scalar_at(dtype, a);
      const Scalar y = scalar_at(dtype, b);
      result.max_delta =
          larger(result.max_delta, larger(apart(x.first, y.first), apart(x.second, y.second)));
    }
    if (!result.first) result.first = static_cast<std::int64_t>(i);
  }
  return result;
}

inline void expect_same_comparison(const Comparison& found, const Comparison& right) {
  EXPECT_EQ(found.elements, right.elements);
  EXPECT_EQ(found.bit_mismatches, right.bit_mismatches);
  EXPECT_EQ(found.first, right.first);
  EXPECT_EQ(std::isnan(found.max_delta), std::isnan(right.max_delta));
  EXPECT_TRUE(std::isnan(right.max_delta) || found.max_delta == right.max_delta)
      << found.max_delta << " for " << right.max_delta;
}

inline Bytes random_bytes(Stream& random, std::size_t count) {
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

/// Returns bit patterns whose upper 16 bits are those of zeros, infinities, NaNs, the number 1 and
/// the smallest numbers of float16, bfloat16, float32 and float64. Each pattern occurs twice: with
/// all remaining bits 0, and with all remaining bits 1.
inline std::vector<Bytes> special_elements(std::size_t width) {
  std::vector<Bytes> elements;
  for (const unsigned top : {0x0000U, 0x8000U, 0x7f80U, 0xff80U, 0x7fc0U, 0x7c00U, 0xfc00U, 0x7e00U,
                             0x7ff0U, 0xfff0U, 0x7ff8U, 0x3f80U, 0x3c00U, 0x0001U, 0xffffU}) {
    for (const unsigned rest : {0x00U, 0xffU}) {
      Bytes element(width, static_cast<std::byte>(rest));
      element[width - 1] = static_cast<std::byte>(top >> 8U);
      if (width > 1) element[width - 2] = static_cast<std::byte>(top & 0xffU);
      elements.push_back(element);
      // If elements have 4 bytes or more, adds one with the pattern in both halves, because a
      // complex number consists of two halves.
      if (width < 4) continue;
      std::copy_n(element.begin() + static_cast<std::ptrdiff_t>(width / 2), width / 2,
                  element.begin());
      elements.push_back(element);
    }
  }
  return elements;
}

/// Visits each pair of special elements as a separate case, because a NaN would hide the deltas of
/// other elements.
inline void for_each_special_pair(DType dtype, const std::function<void(const CompareCase&)>& go) {
  const auto specials = special_elements(size_of(dtype));
  for (std::size_t a = 0; a < specials.size(); ++a) {
    for (std::size_t b = 0; b < specials.size(); ++b) {
      go({.name = "special " + std::to_string(a) + " beside " + std::to_string(b),
          .dtype = dtype,
          .left = specials[a],
          .right = specials[b]});
    }
  }
}

/// Visits the cases of one type. Large cases have at most `most` bytes.
inline void for_each_compare_case(DType dtype, std::size_t most,
                                  const std::function<void(const CompareCase&)>& go) {
  const std::size_t width = size_of(dtype);
  go({.name = "nothing", .dtype = dtype, .left = {}, .right = {}});
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    Stream random(seed);
    const std::size_t elements = seed % 4 == 0 ? most / width : random.below(300);
    CompareCase drawn{.name = "drawn from " + std::to_string(seed),
                      .dtype = dtype,
                      .left = random_bytes(random, elements * width),
                      .right = {},
                      .left_lead = seed % 2 == 0 ? 0 : random.below(16),
                      .right_lead = seed % 2 == 0 ? 0 : random.below(16)};
    drawn.right = drawn.left;
    const std::uint64_t rarity = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 3000 : most * 2;
    for (auto& byte : drawn.right) {
      if (random.below(rarity) == 0) byte ^= static_cast<std::byte>(random.next());
    }
    go(drawn);
  }
  // Flips one bit of each byte in turn, in the blocks that threads compare and in the remainder
  // after the last block.
  CompareCase flipped{.name = "", .dtype = dtype, .left = {}, .right = {}};
  const std::size_t few = 9 * 16 / width + 1;
  flipped.left.assign(few * width, std::byte{0x3f});
  flipped.right = flipped.left;
  for (std::size_t at = 0; at < flipped.right.size(); ++at) {
    flipped.right[at] ^= std::byte{0x01};
    flipped.name = "a bit of byte " + std::to_string(at);
    go(flipped);
    flipped.right[at] = flipped.left[at];
  }
  go(flipped);
}

}  // namespace reprise::contracts
