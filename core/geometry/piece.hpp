#pragma once
// A piece maps a region of a local tensor to a box of the global one. A local tensor is a list of
// pieces: plain shards have one, SwiGLU halves two, stacked experts several, a flattened optimizer
// range up to 2n-1.

#include <vector>

#include "core/geometry/box.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {

struct Piece {
  Box box;                 ///< box in the global tensor
  std::int64_t local = 0;  ///< element offset of the box's first element in the local buffer
  Dims strides;            ///< element strides in the local buffer, one per dimension of the box

  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Returns the local offset, in elements, of the element at global `index` within the piece.
std::int64_t local_offset(const Piece& piece, const Dims& index);

/// Returns one row-major piece at the start of the local buffer.
Piece contiguous_piece(const Box& box);

/// Returns the boxes that make up the row-major range [begin, end) of the elements of `box`, in
/// order: at most 2 * ndim - 1. A rank of a flattened optimizer holds such boxes.
std::vector<Box> boxes_of_range(const Box& box, std::int64_t begin, std::int64_t end);
/// Same, as pieces of a local buffer that contains only this range.
std::vector<Piece> pieces_of_range(const Box& box, std::int64_t begin, std::int64_t end);

/// Copies `extents` elements of `element_bytes` each. The views start at the region's first element
/// and must not overlap. Innermost runs that are contiguous on both sides are a single memcpy.
void copy_strided(const ConstStridedView& source, const StridedView& target, const Dims& extents,
                  std::size_t element_bytes);

}  // namespace reprise
