#pragma once
// Are two runs of elements the same? Bits first, max_delta second: a NaN would make every
// `delta > 0` false, and -0.0 equals 0.0.

#include <cstdint>
#include <optional>
#include <string>

#include "core/geometry/dtype.hpp"

namespace reprise {

struct Comparison {
  std::uint64_t elements = 0;        ///< compared
  std::uint64_t bit_mismatches = 0;  ///< elements whose bits differ
  /// Largest absolute difference among mismatches; NaN if one side of one is NaN and the other is
  /// not, or both with different bits. Of elements of two numbers, which are complex ones and the
  /// pairs of float4_e2m1fn_x2, the larger of the two differences. Integers that differ are at
  /// least 1 apart, however large they are.
  double max_delta = 0;
  std::optional<std::int64_t> first;  ///< index of the first mismatch

  bool same() const { return bit_mismatches == 0; }
  /// Adds what follows `elements` elements later.
  void append(const Comparison& next);
};

/// Both sides contiguous, `elements` of them. One pass; equal blocks cost a memcmp.
Comparison compare_elements(DType dtype, const std::byte* left, const std::byte* right,
                            std::int64_t elements);

/// Returns the element printed for people: value and bits, "0.125 (0x3e00)". A complex one prints
/// as "1-2j (0x...)", a pair of float4_e2m1fn_x2 as "[0.5, -6] (0xf1)", its low four bits first.
std::string print_element(DType dtype, const std::byte* element);

}  // namespace reprise
