#pragma once
// Element types, with the names and sizes of PyTorch.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string_view>

namespace reprise {

enum class DType : std::uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8E4M3FN,
  kFloat8E5M2,
  kFloat8E4M3FNUZ,
  kFloat8E5M2FNUZ,
  kFloat8E8M0FNU,
  kFloat4E2M1FNx2,  ///< two values a byte; an element here is the byte, as in PyTorch
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt64,
  kUInt32,
  kUInt16,
  kUInt8,
  kBool,
  kComplex128,
  kComplex64,
  kComplex32,
};

/// Bytes of one element.
std::size_t size_of(DType dtype);
/// PyTorch's name without the module: "bfloat16", "float8_e4m3fn".
std::string_view name_of(DType dtype);
std::optional<DType> dtype_named(std::string_view name);
std::span<const DType> all_dtypes();

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

inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }

/// The element's value as a double (complex: the real part at index 0, the imaginary part at 1),
/// for max_delta and for printing. Exact for all types but 64-bit integers, which are rounded.
struct Scalar {
  double real = 0;
  double imaginary = 0;
};
Scalar scalar_at(DType dtype, const std::byte* element);

}  // namespace reprise
