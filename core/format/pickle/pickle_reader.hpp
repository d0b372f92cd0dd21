#pragma once
// Reads pickles by a grammar into inert values. Nothing is called or imported; names come from a
// closed list; work and memory are bounded by the length of the input.
//
//   reader                       unlisted name               always refused (os.system, eval, ...)
//   .metadata (metadata.hpp)     UNSUPPORTED                 REFUSED_NAME
//   tensor item's data.pkl       UNSUPPORTED                 REFUSED_NAME
//   bytes item, common.pt        opaque, names are listed    REFUSED_NAME

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/geometry/dtype.hpp"
#include "reprise/tensor.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Location of a pickle, for messages: an error's offset is `offset` plus the position in it.
struct PickleSource {
  std::string file;
  std::uint64_t offset = 0;  ///< offset of the pickle's first byte in `file`
  std::string key = {};      ///< key of the tensor or object, if known
};

/// Storages in the archive that contains a pickle.
class StorageSource {
 public:
  virtual ~StorageSource() = default;
  /// Returns the little-endian bytes of the record `data/<key>`, valid until the next call; nothing
  /// if there is no such record.
  virtual std::optional<ByteSpan> storage(std::string_view key) = 0;
};

/// Content of a bytes item or common.pt.
///
/// Maps Python types: bytes (also as `_codecs.encode`) to Bytes; bytearray, complex, torch.Size,
/// torch.device, enums and so on to Object (an enum written as `getattr(Class, 'MEMBER')` gives
/// the same Object as `Class(value)`); torch.dtype and bare classes to Name; tensors to
/// TensorValue, made contiguous. A Parameter becomes an Object that calls its constructor with a
/// TensorValue; a tensor of another class or with attributes becomes an Object
/// `_rebuild_from_type_v2` of class, TensorValue and attributes. numpy arrays become Objects in
/// one form, see numpy_array.hpp.
struct PickledValue {
  Value value;                              ///< None if opaque
  bool opaque = false;                      ///< not interpreted: keep the item's bytes unchanged
  std::string reason;                       ///< reason for opaque, for people
  std::vector<std::string> unlisted_names;  ///< "module.name", sorted, unique, at most 64
};

/// Reads the pickle of a bytes item. If `storages` is null, tensors make it opaque. Throws
/// TORN_FILE (malformed, truncated), REFUSED_NAME, LIMIT, UNSUPPORTED (an opcode not allowed here,
/// more than kMaxNdim dimensions), EXTENT_MISMATCH (a view that exceeds its storage).
PickledValue decode_value(ByteSpan pickle, const PickleSource& where, StorageSource* storages);
/// Same; sets `end` to the position after the pickle's STOP.
PickledValue decode_value(ByteSpan pickle, const PickleSource& where, StorageSource* storages,
                          std::size_t& end);

/// Content of a tensor item's data.pkl. Units are elements unless named bytes. The view fits the
/// storage size claimed by the pickle; the caller must check that the record is that long: record
/// size >= storage_bytes().
struct TensorDescription {
  DType dtype = DType::kFloat32;
  std::string storage_key;
  std::int64_t storage_elements = 0;
  std::int64_t storage_offset = 0;
  Dims shape;
  Dims strides;
  bool requires_grad = false;
  SignFlips flips;  ///< pending conjugation or negation of a lazy view

  std::int64_t storage_bytes() const {
    return storage_elements * static_cast<std::int64_t>(size_of(dtype));
  }
  /// True if row-major without gaps: the elements are one range that starts at storage_offset.
  bool contiguous() const;
};

/// Throws like decode_value; sparse or quantized tensors and unknown dtypes are UNSUPPORTED.
TensorDescription decode_tensor(ByteSpan pickle, const PickleSource& where);

/// Returns the tensor's elements from its storage, row-major and contiguous. Throws EXTENT_MISMATCH
/// if the storage is shorter than the view needs.
Bytes gather(const TensorDescription& tensor, ByteSpan storage, const PickleSource& where);

}  // namespace reprise
