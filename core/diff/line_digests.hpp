#pragma once
// Digests of the lines of a tensor, by which a line is found again at another place, in another
// tensor or transposed. They have no key, and positions count from the line's first element.
//
//   tensor [2, 3]     row 0: a b c     digest of row 0    = h(0, a) + h(1, b) + h(2, c)
//                     row 1: d e f     digest of column 0 = h(0, a) + h(1, d)
//
// A tensor of more dimensions is a stack of such matrices: a row lies along its last dimension, a
// column along the one before. h is element_digest() with the key 0. Sums are modulo 2^64, so boxes
// may be added in any order. Equal digests only suggest equal lines: read the elements before
// telling anyone.

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/geometry/box.hpp"

namespace reprise {

class LineDigests {
 public:
  /// Of a tensor of this shape, with at least one dimension. It has room for the digests of its
  /// columns only if `with_columns`.
  LineDigests(const Dims& shape, std::size_t width, bool with_columns);

  static std::uint64_t rows_of(const Dims& shape);
  static std::uint64_t columns_of(const Dims& shape);

  /// Adds the elements of a box, row-major. May be called on several threads at the same time, each
  /// with a `scratch` of its own.
  void add(const Box& box, ByteSpan elements, std::vector<std::uint64_t>& scratch);

  const Dims& shape() const { return shape_; }
  /// Returns the digest of each slice [.., i, ..] along a dimension: of its rows or, along the last
  /// one, of its columns; nothing if there are no digests of columns. Slices of tensors whose other
  /// extents are equal can be compared.
  std::vector<std::uint64_t> along(std::size_t dimension) const;
  /// Returns the digest of the whole tensor.
  std::uint64_t whole() const;
  /// Returns what whole() is of the tensor with its last two dimensions exchanged; nothing for one
  /// dimension, and without digests of columns.
  std::optional<std::uint64_t> transposed() const;
  /// True if all elements have the same bits.
  bool constant() const { return !varied_; }

 private:
  template <class Word>
  void add_words(const Box& box, const std::byte* elements, std::vector<std::uint64_t>& scratch);
  void note_variety(ByteSpan elements);

  Dims shape_;
  std::size_t width_;
  std::vector<std::uint64_t> rows_;
  std::vector<std::uint64_t> columns_;
  std::atomic<std::uint64_t> first_ = 0;  ///< an odd hash of some element; 0 if none was added
  std::atomic<bool> varied_ = false;
};

}  // namespace reprise
