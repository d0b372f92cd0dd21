#pragma once
// Describes a tensor as parts of stored tensors: a tensor of another layout of the same model. All
// is pure data. A step such as a split or a transposition makes one description of another; no
// element is looked at. Since each part is a box on both sides, the way back is known, too.
//
//   qkv [12, 4] of two groups, q 4 rows, k 1, v 1:  q [8, 4] = qkv[0:4], qkv[6:10]

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/piece_reader.hpp"
#include "core/geometry/box.hpp"
#include "core/geometry/piece.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// A part of a mapped tensor: a box of a stored tensor, and where it stands.
struct MappedPart {
  std::uint32_t source = 0;  ///< index into Catalog::tensors
  Box box;                   ///< within the logical shape of the stored tensor
  Dims at;                   ///< its first element in the mapped tensor
  /// For each dimension of the stored tensor, that of the mapped tensor along which it runs; -1 for
  /// one that the mapped tensor lacks, where the box has extent 1.
  Dims along;

  /// Returns the box in the mapped tensor.
  Box target() const;
  friend bool operator==(const MappedPart&, const MappedPart&) = default;
};

struct MappedTensor {
  std::string key;
  DType stored = DType::kFloat32;  ///< type of the stored elements, the same in all parts
  DType dtype = DType::kFloat32;   ///< if it is another one, elements are converted
  Dims shape;
  std::vector<MappedPart> parts;
  /// True if elements that no part covers are meant to be zero, such as the rows of a vocabulary
  /// that was padded.
  bool padded = false;

  friend bool operator==(const MappedTensor&, const MappedTensor&) = default;
};

/// Returns the stored tensor as it is, under its own key.
MappedTensor mapped(const StoredTensor& stored, std::uint32_t source);

// Steps. They throw USAGE if the tensor does not have the dimension, or if sizes do not fit; the
// error has the tensor's key.

/// Returns the elements [range.begin, range.end) along `dim`.
MappedTensor narrowed(const MappedTensor& tensor, std::size_t dim, Interval range);
/// Returns the tensors one after the other along `dim`, under the key of the first. All must have
/// the same types, and the same shape but for that dimension.
MappedTensor joined(std::span<const MappedTensor> tensors, std::size_t dim);
/// Returns the tensor whose dimension d is dimension order[d] of the given one.
MappedTensor transposed(const MappedTensor& tensor, const Dims& order);
/// Removes a dimension of extent 1.
MappedTensor without_dim(const MappedTensor& tensor, std::size_t dim);
/// Adds a dimension of extent 1 before dimension `dim`.
MappedTensor with_dim(const MappedTensor& tensor, std::size_t dim);
/// Adds zeros behind the elements along `dim` until there are `size`.
MappedTensor padded(const MappedTensor& tensor, std::size_t dim, std::int64_t size);

/// Cuts dimension `dim` into `blocks` equal blocks, and each block by `shares`. Returns a tensor
/// for each share, which has its rows of all blocks. The extent of a block must be a multiple of
/// the sum of the shares.
std::vector<MappedTensor> split(const MappedTensor& tensor, std::size_t dim, std::int64_t blocks,
                                std::span<const std::int64_t> shares);
/// Does the opposite of split(): the first block of each tensor, then the second of each.
MappedTensor interleaved(std::span<const MappedTensor> tensors, std::size_t dim,
                         std::int64_t blocks);

// The functions below return what must be read, in either direction.

/// Returns what must be read of stored tensors for elements [begin, end) of the mapped tensor,
/// numbered in row-major order. The pieces' local buffer holds these elements.
std::vector<PieceOf> sources_of(const MappedTensor& tensor, std::int64_t begin, std::int64_t end);

/// Says into which mapped tensor a part of a stored tensor went.
struct MappedBack {
  std::uint32_t tensor = 0;  ///< index of the mapped tensor
  MappedPart part;
};
/// Returns what must be read of mapped tensors to get back elements [begin, end) of a stored tensor
/// of shape `shape`. Elements that no part has are left out.
std::vector<PieceOf> targets_of(const Dims& shape, std::span<const MappedBack> parts,
                                std::int64_t begin, std::int64_t end);

}  // namespace reprise
