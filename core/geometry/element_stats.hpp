#pragma once
// Counts what the numbers of a tensor are like: NaN, infinite, zero, denormal, and their range.

#include <cstdint>
#include <limits>
#include <span>

#include "reprise/tensor.hpp"

namespace reprise {

/// A complex element has two numbers, and so has one of float4_e2m1fn_x2.
struct ElementStats {
  std::uint64_t numbers = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t zero = 0;
  /// Numbers closer to zero than each normal one; only of float64, float32, float16 and bfloat16,
  /// since smaller types need them.
  std::uint64_t denormal = 0;
  // Of finite numbers:
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double squares = 0;  ///< sum of the squares

  std::uint64_t finite() const { return numbers - nan - infinite; }
  /// True if there are numbers, and all are finite and the same.
  bool constant() const { return numbers != 0 && finite() == numbers && least == greatest; }
  double mean() const;      ///< NaN if no number is finite
  double norm() const;      ///< root of the sum of squares
  double absolute() const;  ///< largest absolute value; 0 if no number is finite

  /// Adds elements in the host's byte order. 64-bit integers are rounded to double. The same
  /// elements in the same order give the same sums.
  void add(DType dtype, std::span<const std::byte> elements);
  void add(const ElementStats& other);
};

}  // namespace reprise
