#pragma once
// Arithmetic on elements: signs that are flipped, and the numbers that elements are made of.

#include <cstddef>
#include <span>

#include "reprise/tensor.hpp"

namespace reprise {

/// Lazy views of PyTorch: signs that are flipped when elements are read (Tensor.is_conj, is_neg).
struct SignFlips {
  bool conjugate = false;  ///< of the imaginary parts
  bool negate = false;     ///< of every part

  bool any() const { return conjugate || negate; }
};
/// True if elements of this type can have their signs flipped so: floats, and to conjugate complex
/// ones.
bool can_flip(DType dtype, SignFlips flips);
/// In place; whole elements in host order.
void flip_signs(DType dtype, std::span<std::byte> elements, SignFlips flips);

/// The numbers that an element is made of. Most have one; a complex one has a real and an imaginary
/// part; a float4_e2m1fn_x2 has the value in its low four bits and the one in its high four bits.
struct Scalar {
  double first = 0;
  double second = 0;
};
/// Returns the element's numbers. They are exact for all types but 64-bit integers, which are
/// rounded to a double.
Scalar scalar_at(DType dtype, const std::byte* element);

}  // namespace reprise
