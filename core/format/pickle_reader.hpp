#pragma once
// Pickles, read by a grammar into inert values. Nothing is called or imported; names come from a
// closed list; work and memory are bounded by the length of the input.
//
//   who reads                    unlisted name               always refused (os.system, eval, ...)
//   .metadata (metadata.hpp)     UNSUPPORTED                 REFUSED_NAME
//   tensor item's data.pkl       UNSUPPORTED                 REFUSED_NAME
//   bytes item, common.pt        opaque, names are listed    REFUSED_NAME

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

/// Where a pickle lies, for messages: offsets in errors are `offset` plus the position in it.
struct PickleSource {
  std::string file;
  std::uint64_t offset = 0;  ///< of the pickle's first byte in `file`
  std::string key = {};      ///< of the tensor or object, if known
};

/// The storages of the archive that a pickle stands in.
class StorageSource {
 public:
  virtual ~StorageSource() = default;
  /// The little-endian bytes of the record `data/<key>`; nothing if there is no such record. They
  /// stay valid until the next call.
  virtual std::optional<ByteSpan> storage(std::string_view key) = 0;
};

/// What a bytes item or common.pt holds.
///
/// How Python's types map: bytes (also as `_codecs.encode`) to Bytes; bytearray, complex,
/// torch.Size, torch.device, enums and so on to Object (an enum written as
/// `getattr(Class, 'MEMBER')` becomes the same Object as `Class(value)`); torch.dtype and bare
/// classes to Name; tensors to TensorValue, made contiguous. A Parameter is the Object of the call
/// that makes it of a TensorValue; a tensor of another class, or with attributes, is the Object
/// `_rebuild_from_type_v2` of class, TensorValue and attributes. numpy arrays are Objects of one
/// spelling, see numpy_array.hpp.
struct PickledValue {
  Value value;                              ///< None if opaque
  bool opaque = false;                      ///< not interpreted: keep the item's bytes as they are
  std::string reason;                       ///< why it is opaque, for people
  std::vector<std::string> unlisted_names;  ///< "module.name", sorted, unique, at most 64
};

/// Reads the pickle of a bytes item. `storages` may be null: tensors then make it opaque.
/// Throws TORN_FILE (malformed, truncated), REFUSED_NAME, LIMIT, UNSUPPORTED (an opcode that has no
/// place here, more than kMaxNdim dimensions), EXTENT_MISMATCH (a view that leaves its storage).
PickledValue decode_value(ByteSpan pickle, const PickleSource& where, StorageSource* storages);

/// What a tensor item's data.pkl says. Units are elements unless named bytes. The view fits the
/// storage that the pickle claims; whether that storage is there is for the caller to check:
/// record size >= storage_bytes().
struct TensorDescription {
  DType dtype = DType::kFloat32;
  std::string storage_key;
  std::int64_t storage_elements = 0;
  std::int64_t storage_offset = 0;
  Dims shape;
  Dims strides;
  bool requires_grad = false;
  SignFlips flips;  ///< of a lazily conjugated or negated view

  std::int64_t storage_bytes() const {
    return storage_elements * static_cast<std::int64_t>(size_of(dtype));
  }
  /// Row-major without gaps: the elements are one range that starts at storage_offset.
  bool contiguous() const;
};

/// Throws as decode_value; a sparse or quantized tensor and an unknown dtype are UNSUPPORTED.
TensorDescription decode_tensor(ByteSpan pickle, const PickleSource& where);

/// The tensor's elements, row-major and contiguous, out of its storage. Throws EXTENT_MISMATCH if
/// the storage is shorter than the view needs.
Bytes gather(const TensorDescription& tensor, ByteSpan storage, const PickleSource& where);

}  // namespace reprise
