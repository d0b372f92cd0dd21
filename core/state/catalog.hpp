#pragma once
// Defines Catalog, the table of contents of a checkpoint. It lists the boxes of the tensors, the
// objects, and where their bytes are in the files. It is pure data: core/format reads and writes
// it, and core/plan reads it.

#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/geometry/box.hpp"
#include "core/geometry/dtype.hpp"
#include "core/geometry/piece.hpp"

namespace reprise {

/// Index into Catalog::files.
using FileIndex = std::uint32_t;
/// File index of an item for which the metadata lists no storage.
inline constexpr FileIndex kNoFile = 0xffffffff;

/// What the bytes of a chunk are.
enum class ItemForm : std::uint8_t {
  kArchive,   ///< what torch.save writes for one tensor
  kElements,  ///< the elements alone, row-major and little-endian, as in a safetensors file
  kView,      ///< elements within a record of a file of torch.save, see StoredView
};

/// A record of an archive that has the elements of one tensor, or of several that share memory.
struct SharedRecord {
  std::string name;   ///< such as "data/0"
  ByteRange range;    ///< its content in the file
  std::uint32_t crc;  ///< stored checksum
  /// True once its content was found to match the checksum, so that nobody reads it for that again.
  mutable std::atomic<bool> checked = false;

  SharedRecord(std::string record, ByteRange content, std::uint32_t checksum)
      : name(std::move(record)), range(content), crc(checksum) {}
};

/// How the elements of a chunk lie in the bytes of its range, which begin with its first element.
struct StoredView {
  Dims strides;           ///< in elements; 0 along dimensions that are expanded
  bool byteswap = false;  ///< true if the elements are big-endian
  SignFlips flips = {};   ///< flips to apply to the elements after reading
  std::shared_ptr<const SharedRecord> record;
};

struct StoredChunk {
  Box box;
  FileIndex file = kNoFile;
  ByteRange range;  ///< range of the whole item; an archive has more than its elements
  ItemForm form = ItemForm::kArchive;
  std::shared_ptr<const StoredView> view = {};  ///< only for ItemForm::kView

  friend bool operator==(const StoredChunk&, const StoredChunk&) = default;
};

/// Properties of the tensor object that was saved. The engine does not use them, but it keeps them
/// when it rewrites the tensor.
struct TensorTraits {
  bool requires_grad = false;
  std::uint8_t memory_format = 0;  ///< 0 contiguous, 1 channels last, 2 preserved
  bool pin_memory = false;
  std::optional<std::vector<std::int64_t>> strides = {};  ///< empty if the writer omits strides

  friend auto operator<=>(const TensorTraits&, const TensorTraits&) = default;
};

/// The ranks that own an item, if each rank wrote its own metadata (`__<rank>.metadata`).
struct KnownBy {
  /// The ranks in ascending order; empty if a single `.metadata` serves all ranks.
  std::vector<std::int32_t> ranks = {};
  /// True if other ranks have a different item under the same name. The key of this item is then
  /// `<name>@rank<r>`, where r is the lowest rank that owns this item.
  bool own = false;
};
/// Returns the suffix "@rank<r>", which is added to the key of an item that not all ranks share.
std::string own_suffix(std::int32_t rank);

struct StoredTensor {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;
  std::vector<StoredChunk> chunks;  ///< in the order of the metadata
  /// Original shape of optimizer state that is stored flattened, as in older Megatron files. For
  /// such a tensor, `shape` consists of the fragmentation counts followed by a flat length. For any
  /// other tensor, `original_shape` has no dimensions.
  Dims original_shape;
  /// Extents that the last dimension of `shape` stands for, if the tensor has more than kMaxNdim
  /// dimensions; no chunk is cut along those.
  FoldedExtents folded = {};
  TensorTraits traits = {};
  /// Position among all keys of the metadata. Tensors and objects are counted together.
  std::uint32_t place = 0;
  KnownBy known_by = {};
};

/// An item of bytes: a sharded object (`key/shard_<offset>_<grid>`) or any other non-tensor value.
struct StoredObject {
  std::string key;
  FileIndex file = kNoFile;
  ByteRange range;
  std::uint32_t place = 0;  ///< position among all keys of the metadata, as in StoredTensor
  KnownBy known_by = {};
};

/// Returns the item's key as a job knows it, that is, without the suffix of the rank.
std::string_view name_of(const StoredTensor& tensor);
std::string_view name_of(const StoredObject& object);

/// Returns the tensor's shape as a job knows it: original_shape if it is set, otherwise shape.
const Dims& logical_shape(const StoredTensor& tensor);

/// Returns all dimensions of the tensor as a job knows it, those that are folded among them.
std::vector<std::int64_t> all_extents(const StoredTensor& tensor);

/// Returns a chunk's part of the logical tensor as pieces of the chunk's row-major payload. A plain
/// chunk is a single piece. A flattened chunk has one piece for each box in its range. Throws
/// EXTENT_MISMATCH if the range exceeds the block, or if the fragmentation does not divide the
/// original shape.
///
///   original [4, 6] split 2 x 1, flattened: shape [2, 1, 12]; the chunk at [1, 0, 3:9] holds
///   elements 3..9 of the block [2:4, 0:6], which are the boxes [2:3, 3:6] and [3:4, 0:3]
std::vector<Piece> pieces_of(const StoredTensor& tensor, const StoredChunk& chunk);

struct Catalog {
  std::vector<std::string> files;     ///< paths relative to the checkpoint's directory
  std::vector<StoredTensor> tensors;  ///< sorted by key; keys are unique
  std::vector<StoredObject> objects;  ///< sorted by key; keys are unique

  const StoredTensor* tensor(std::string_view key) const;
  const StoredObject* object(std::string_view key) const;
};

}  // namespace reprise
