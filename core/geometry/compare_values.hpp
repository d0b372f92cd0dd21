#pragma once
// Compares runs of elements of two types by value: both are converted exactly to a type that can
// represent every value of either.

#include <cstdint>
#include <optional>

#include "core/geometry/compare.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {

/// Returns the type to which elements of both types convert without rounding. Returns nothing if
/// there is none among the types that tensors have. For example, there is none for int64 and
/// float32, for float32 and complex64, and for float4_e2m1fn_x2 and any other type.
std::optional<DType> exact_type_of(DType a, DType b);

/// Elements of one type.
struct TypedElements {
  DType dtype;
  const std::byte* data;
};
/// Compares `elements` contiguous elements of each side by value. Converted elements are the same
/// if their bits are the same, or if both are NaN. So -0.0 differs from 0.0, and from the integer
/// 0. Comparison::bit_mismatches counts the elements whose values differ. exact_type_of() must
/// return a type for the two types.
Comparison compare_values(TypedElements left, TypedElements right, std::int64_t elements);

}  // namespace reprise
