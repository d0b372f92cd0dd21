#pragma once
// A short list of int64, one per dimension: shapes, offsets, strides. No allocation.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <span>

#include "core/base/check.hpp"

namespace reprise {

/// Most dimensions that a tensor may have here: a 5-d convolution, an expert axis, a layer axis and
/// one for flattened ranges.
inline constexpr std::size_t kMaxRank = 8;

class Dims {
 public:
  constexpr Dims() = default;
  constexpr Dims(std::initializer_list<std::int64_t> values) {
    for (const auto value : values) push_back(value);
  }
  explicit Dims(std::span<const std::int64_t> values) {
    for (const auto value : values) push_back(value);
  }
  /// `rank` times `value`.
  static Dims filled(std::size_t rank, std::int64_t value) {
    Dims dims;
    for (std::size_t d = 0; d < rank; ++d) dims.push_back(value);
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
    CHECK(size_ < kMaxRank);
    values_[size_++] = value;
  }

  friend constexpr bool operator==(const Dims& a, const Dims& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t d = 0; d < a.size_; ++d) {
      if (a.values_[d] != b.values_[d]) return false;
    }
    return true;
  }
  /// Lexicographic; a shorter list comes before its extensions.
  friend constexpr bool operator<(const Dims& a, const Dims& b) {
    for (std::size_t d = 0; d < a.size_ && d < b.size_; ++d) {
      if (a.values_[d] != b.values_[d]) return a.values_[d] < b.values_[d];
    }
    return a.size_ < b.size_;
  }
  /// "[4, 6]"
  friend std::ostream& operator<<(std::ostream& out, const Dims& dims);

 private:
  std::array<std::int64_t, kMaxRank> values_{};
  std::size_t size_ = 0;
};

/// Product of the extents; 1 for no dimensions. For extents that are known to be sane.
std::int64_t volume(const Dims& extents);
/// The same for extents that come from outside: nothing if one is negative or the product does not
/// fit an int64.
std::optional<std::int64_t> checked_volume(const Dims& extents);

/// Row-major strides in elements. As PyTorch does, an extent of 0 counts as 1, so (0, 7) has (7,
/// 1).
Dims contiguous_strides(const Dims& extents);

/// Row-major linear index of `index` in `extents`, and back.
std::int64_t linear_index(const Dims& index, const Dims& extents);
Dims index_at(std::int64_t linear, const Dims& extents);

std::string to_string(const Dims& dims);

}  // namespace reprise
