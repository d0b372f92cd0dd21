#pragma once
// Defines shapes, strided views of memory, and element types. The types have PyTorch's names and
// sizes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/types.hpp"

namespace reprise REPRISE_API {

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
  kFloat4E2M1FNx2,  ///< packs two values in a byte; as in PyTorch, one element is one byte
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

/// Returns the size of one element in bytes. Throws USAGE for a number that is not a DType.
std::size_t size_of(DType dtype);
/// Returns PyTorch's name for the type, without the module: "bfloat16", "float8_e4m3fn". Throws
/// USAGE for a number that is not a DType.
std::string_view name_of(DType dtype);
std::optional<DType> dtype_named(std::string_view name);
std::span<const DType> all_dtypes();
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }

namespace detail {
/// Throws for a tensor of more than kMaxNdim dimensions, which is a programming error.
[[noreturn]] void too_many_dims();
}  // namespace detail

/// Largest number of dimensions a tensor may have. That is enough for a 5-d convolution, an expert
/// axis, a layer axis and an axis of flattened ranges.
inline constexpr std::size_t kMaxNdim = 8;

/// A short list of int64, one per dimension: shapes, offsets, strides. Never allocates.
class Dims {
 public:
  constexpr Dims() = default;
  constexpr Dims(std::initializer_list<std::int64_t> values) {
    for (const auto value : values) push_back(value);
  }
  explicit Dims(std::span<const std::int64_t> values) {
    for (const auto value : values) push_back(value);
  }
  /// Returns a list of `ndim` entries that all equal `value`.
  static Dims filled(std::size_t ndim, std::int64_t value) {
    Dims dims;
    for (std::size_t d = 0; d < ndim; ++d) dims.push_back(value);
    return dims;
  }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr std::int64_t& operator[](std::size_t d) { return values_[d]; }
  constexpr std::int64_t operator[](std::size_t d) const { return values_[d]; }
  constexpr const std::int64_t* begin() const { return values_.data(); }
  constexpr const std::int64_t* end() const { return values_.data() + size_; }
  constexpr std::int64_t* begin() { return values_.data(); }
  constexpr std::int64_t* end() { return values_.data() + size_; }

  constexpr void push_back(std::int64_t value) {
    if (size_ == kMaxNdim) detail::too_many_dims();
    values_[size_++] = value;
  }

  friend constexpr bool operator==(const Dims& a, const Dims& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t d = 0; d < a.size_; ++d) {
      if (a.values_[d] != b.values_[d]) return false;
    }
    return true;
  }
  /// Compares lexicographically. A list comes before longer lists that begin with it.
  friend constexpr bool operator<(const Dims& a, const Dims& b) {
    for (std::size_t d = 0; d < a.size_ && d < b.size_; ++d) {
      if (a.values_[d] != b.values_[d]) return a.values_[d] < b.values_[d];
    }
    return a.size_ < b.size_;
  }
  /// Prints "[4, 6]".
  friend REPRISE_API std::ostream& operator<<(std::ostream& out, const Dims& dims);

 private:
  std::array<std::int64_t, kMaxNdim> values_{};
  std::size_t size_ = 0;
};

/// Extents of the dimensions for which the last one of a tensor's Dims stands, if the tensor has
/// more than kMaxNdim; see State::set_folded. Empty if it stands for itself.
using FoldedExtents = std::vector<std::int64_t>;

/// Returns the product of the extents; 1 if there are no dimensions. The extents must be validated
/// already.
std::int64_t volume(const Dims& extents);
/// Returns the product of untrusted extents. Returns nothing if one is negative or the product does
/// not fit in an int64.
std::optional<std::int64_t> checked_volume(const Dims& extents);
std::optional<std::int64_t> checked_volume(std::span<const std::int64_t> extents);

/// Returns row-major strides in elements. As in PyTorch, an extent of 0 counts as 1, so extents (0,
/// 7) have strides (7, 1).
Dims contiguous_strides(const Dims& extents);

/// linear_index() converts `index` to its row-major linear index within `extents`; index_at()
/// converts back.
std::int64_t linear_index(const Dims& index, const Dims& extents);
Dims index_at(std::int64_t linear, const Dims& extents);

std::string to_string(const Dims& dims);

/// One side of a strided copy. `strides` are in elements and never negative.
struct StridedView {
  std::byte* data = nullptr;
  Dims strides;
};
struct ConstStridedView {
  const std::byte* data = nullptr;
  Dims strides;
};

}  // namespace REPRISE_API
