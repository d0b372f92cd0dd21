#pragma once
// Converts elements between floating-point types.

#include <cstddef>
#include <span>

#include "reprise/tensor.hpp"

namespace reprise {

/// True if elements of `from` can be converted to `to`: both are the same, or float64, float32,
/// float16 or bfloat16.
bool can_convert(DType from, DType to);

/// Converts elements in the host's byte order. Rounds to the nearest value that `to` has, and to an
/// even one between two, as PyTorch does. `out` has room for as many elements as there are in `in`.
void convert(DType from, std::span<const std::byte> in, DType to, std::byte* out);

}  // namespace reprise
