#pragma once
// A checkpoint's description of itself: boxes of tensors, objects, and the bytes of the files that
// hold them. Pure data; core/format reads and writes it, core/plan reads it.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/geometry/box.hpp"
#include "core/geometry/dtype.hpp"
#include "core/geometry/piece.hpp"

namespace reprise {

/// Index into Catalog::files.
using FileIndex = std::uint32_t;
inline constexpr FileIndex kNoFile = 0xffffffff;  ///< the metadata names no storage for the item

struct StoredChunk {
  Box box;
  FileIndex file = kNoFile;
  ByteRange range;  ///< range of the whole item (an archive), not only of its elements

  friend bool operator==(const StoredChunk&, const StoredChunk&) = default;
};

/// Properties of a tensor when it was saved. Nothing depends on them; rewriting the tensor keeps
/// them.
struct TensorTraits {
  bool requires_grad = false;
  std::uint8_t memory_format = 0;  ///< 0 contiguous, 1 channels last, 2 preserved
  bool pin_memory = false;
  std::optional<std::vector<std::int64_t>> strides = {};  ///< empty if the writer omits them

  friend auto operator<=>(const TensorTraits&, const TensorTraits&) = default;
};

/// Owners of an item, if each rank wrote its own metadata: `__<rank>.metadata`.
struct KnownBy {
  std::vector<std::int32_t> ranks = {};  ///< ascending; none: a single `.metadata` for all ranks
  /// True if other ranks have another item of the same name. The item's key is then
  /// `<name>@rank<the first of these ranks>`.
  bool own = false;
};
/// Returns the suffix of such a key: "@rank3".
std::string own_suffix(std::int32_t rank);

struct StoredTensor {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;
  std::vector<StoredChunk> chunks;  ///< in the order of the metadata
  /// Original tensor shape of flattened optimizer state in older Megatron files, where `shape` is
  /// fragmentation counts and a flat length. Otherwise it has no dimensions.
  Dims original_shape;
  TensorTraits traits = {};
  std::uint32_t place = 0;  ///< position among the metadata's keys, tensors and objects together
  KnownBy known_by = {};
};

/// An item of bytes: a sharded object (`key/shard_<offset>_<grid>`) or any other non-tensor value.
struct StoredObject {
  std::string key;
  FileIndex file = kNoFile;
  ByteRange range;
  std::uint32_t place = 0;  ///< as for a tensor
  KnownBy known_by = {};
};

/// Returns the key under which a job knows the item: without the suffix that tells ranks apart.
std::string_view name_of(const StoredTensor& tensor);
std::string_view name_of(const StoredObject& object);

/// Returns the shape the job knows: original_shape if there is one, otherwise shape.
const Dims& logical_shape(const StoredTensor& tensor);

/// Returns a chunk's part of the logical tensor as pieces of its row-major payload: one for a plain
/// chunk; the boxes of its range for a flattened one. Throws EXTENT_MISMATCH if the range exceeds
/// the block or the fragmentation does not divide the original shape.
///
///   original [4, 6] cut 2 x 1, flattened: shape [2, 1, 12]; the chunk at [1, 0, 3:9] holds
///   elements 3..9 of the block [2:4, 0:6], which are the boxes [2:3, 3:6] and [3:4, 0:3]
std::vector<Piece> pieces_of(const StoredTensor& tensor, const StoredChunk& chunk);

struct Catalog {
  std::vector<std::string> files;     ///< relative to the checkpoint's directory
  std::vector<StoredTensor> tensors;  ///< sorted by key, keys unique
  std::vector<StoredObject> objects;  ///< sorted by key, keys unique

  const StoredTensor* tensor(std::string_view key) const;
  const StoredObject* object(std::string_view key) const;
};

}  // namespace reprise
