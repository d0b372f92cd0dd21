#pragma once
// Compares two runs of elements. Two elements are equal if their bits are equal; max_delta only
// says how far apart unequal elements are. A test `delta > 0` would miss every NaN and the
// difference between -0.0 and 0.0.

#include <cstdint>
#include <optional>
#include <string>

#include "core/geometry/dtype.hpp"

namespace reprise {

struct Comparison {
  std::uint64_t elements = 0;        ///< number of elements compared
  std::uint64_t bit_mismatches = 0;  ///< elements whose bits differ
  /// Largest absolute difference between unequal elements. It is NaN if either of two unequal
  /// elements is NaN. If an element has two numbers (complex numbers, and the pairs of
  /// float4_e2m1fn_x2), its difference is the larger of the two. Unequal integers are at least 1
  /// apart, however large they are.
  double max_delta = 0;
  std::optional<std::int64_t> first;  ///< index of the first mismatch

  bool same() const { return bit_mismatches == 0; }
  /// Adds the result of comparing the elements that follow.
  void append(const Comparison& next);
};

/// Compares `elements` contiguous elements of each side in one pass. Equal blocks cost only a
/// memcmp.
Comparison compare_elements(DType dtype, const std::byte* left, const std::byte* right,
                            std::int64_t elements);

/// Prints an element for human readers as value and bits: "0.125 (0x3e00)". A complex element is
/// printed as "1-2j (0x...)", and a pair of float4_e2m1fn_x2 as "[0.5, -6] (0xf1)", with the low
/// four bits first.
std::string print_element(DType dtype, const std::byte* element);

}  // namespace reprise
