#pragma once
// Arithmetic on elements: flips signs and decodes the numbers in an element.

#include <cstddef>
#include <span>

#include "reprise/tensor.hpp"

namespace reprise {

/// Sign flips of PyTorch's lazy views (Tensor.is_conj, is_neg). They are applied when elements are
/// read.
struct SignFlips {
  bool conjugate = false;  ///< flip the sign of imaginary parts
  bool negate = false;     ///< flip the sign of all numbers in the element

  bool any() const { return conjugate || negate; }
};
/// True if the flips can be applied to this type. Both flips can be applied to complex types, but
/// only `negate` to other floats of at least 16 bits.
bool can_flip(DType dtype, SignFlips flips);
/// Flips the signs of `elements` in place. Expects whole elements in the host's byte order.
void flip_signs(DType dtype, std::span<std::byte> elements, SignFlips flips);

/// The numbers in an element. Most elements have one number. A complex element has a real and an
/// imaginary part. An element of float4_e2m1fn_x2 has one number in its low four bits and one in
/// its high four bits.
struct Scalar {
  double first = 0;
  double second = 0;
};
/// Returns the numbers in an element. They are exact, except that 64-bit integers are rounded to a
/// double.
Scalar scalar_at(DType dtype, const std::byte* element);

}  // namespace reprise
