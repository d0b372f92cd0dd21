#pragma once
// Element arithmetic: sign flips, and the numbers in an element.

#include <cstddef>
#include <span>

#include "reprise/tensor.hpp"

namespace reprise {

/// Sign flips of PyTorch's lazy views, applied when elements are read (Tensor.is_conj, is_neg).
struct SignFlips {
  bool conjugate = false;  ///< flip imaginary parts
  bool negate = false;     ///< flip every part

  bool any() const { return conjugate || negate; }
};
/// True if the flips apply to this type: floats, and for conjugation complex
/// types.
bool can_flip(DType dtype, SignFlips flips);
/// Flips in place; expects whole elements in host order.
void flip_signs(DType dtype, std::span<std::byte> elements, SignFlips flips);

/// The numbers in an element. Most have one; a complex one has a real and an imaginary part; a
/// float4_e2m1fn_x2 has the value in its low four bits and the one in its high four bits.
struct Scalar {
  double first = 0;
  double second = 0;
};
/// Returns the element's numbers, which are exact except for 64-bit integers, which are rounded to
/// a double.
Scalar scalar_at(DType dtype, const std::byte* element);

}  // namespace reprise
