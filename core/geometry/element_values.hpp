#pragma once
// Decodes elements to numbers, for arithmetic that is not about bits.

#include <cstddef>

#include "reprise/tensor.hpp"

namespace reprise {

/// True for floats and complex numbers.
bool is_float_like(DType dtype);

/// Returns how many numbers an element has: 2 if it is complex or a pair of float4_e2m1fn_x2,
/// otherwise 1.
std::size_t numbers_per_element(DType dtype);

/// Writes the numbers of `count` elements in the host's byte order to `out`, which has room for
/// numbers_per_element() times as many. The numbers are exact, except that 64-bit integers are
/// rounded to a double. `elements` may have any alignment.
void decode_elements(DType dtype, const std::byte* elements, std::size_t count, double* out);

}  // namespace reprise
