#pragma once
// Defines pieces. A piece maps a region of a local tensor to a box of the global tensor. A local
// tensor is a list of pieces: a plain shard has one, SwiGLU halves have two, stacked experts have
// several, and a flattened optimizer range has up to 2n-1 for n dimensions.

#include <vector>

#include "core/geometry/box.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {

struct Piece {
  Box box;                 ///< box that the piece covers in the global tensor
  std::int64_t local = 0;  ///< offset of the box's first element in the local buffer, in elements
  Dims strides;  ///< strides in the local buffer, in elements, one per dimension of the box

  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Returns the local offset, in elements, of the element with the global index `index`.
std::int64_t local_offset(const Piece& piece, const Dims& index);

/// True if no two elements of the piece have the same local offset. Looks at one dimension after
/// another, from the smallest stride, so it is false for some unusual strides that would do.
bool has_elements_apart(const Piece& piece);

/// Returns a row-major piece that lies at the start of the local buffer.
Piece contiguous_piece(const Box& box);

/// Splits elements [begin, end) of `box`, numbered in row-major order, into boxes. Returns at most
/// 2 * ndim - 1 boxes, in order. A rank of a flattened optimizer holds such boxes.
std::vector<Box> boxes_of_range(const Box& box, std::int64_t begin, std::int64_t end);
/// Returns the boxes of boxes_of_range() as pieces of a local buffer that contains only this range.
std::vector<Piece> pieces_of_range(const Box& box, std::int64_t begin, std::int64_t end);

/// Copies a region of shape `extents`, whose elements have `element_bytes` bytes each. Both views
/// start at the region's first element; they must not overlap. If the innermost elements are
/// contiguous on both sides, each run of them is copied by a single memcpy.
void copy_strided(const ConstStridedView& source, const StridedView& target, const Dims& extents,
                  std::size_t element_bytes);

}  // namespace reprise
