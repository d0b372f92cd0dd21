#pragma once
// Compares two runs of elements: bits first, max_delta second, because a NaN would make every
// `delta > 0` false, and -0.0 equals 0.0.

#include <cstdint>
#include <optional>
#include <string>

#include "core/geometry/dtype.hpp"

namespace reprise {

struct Comparison {
  std::uint64_t elements = 0;        ///< number compared
  std::uint64_t bit_mismatches = 0;  ///< elements whose bits differ
  /// Largest absolute difference among mismatches; NaN if only one side of one is NaN, or both are
  /// with different bits. For elements of two numbers (complex ones and the pairs of
  /// float4_e2m1fn_x2), the larger of the two differences counts. Unequal integers are at least 1
  /// apart, however large they are.
  double max_delta = 0;
  std::optional<std::int64_t> first;  ///< index of the first mismatch

  bool same() const { return bit_mismatches == 0; }
  /// Adds the result for the elements that follow these.
  void append(const Comparison& next);
};

/// Compares `elements` contiguous elements per side in one pass; equal blocks cost a memcmp.
Comparison compare_elements(DType dtype, const std::byte* left, const std::byte* right,
                            std::int64_t elements);

/// Returns the element printed for people: value and bits, "0.125 (0x3e00)". A complex one prints
/// as "1-2j (0x...)", a pair of float4_e2m1fn_x2 as "[0.5, -6] (0xf1)", its low four bits first.
std::string print_element(DType dtype, const std::byte* element);

}  // namespace reprise
