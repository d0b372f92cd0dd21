#pragma once
// Converts pickles to inert values. A grammar limits what each kind of pickle may contain. Nothing
// is called or imported. Names come from a closed list. Work and memory are bounded by the length
// of the input.
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

/// The file and offset of a pickle, for error messages. The offset of an error is `offset` plus the
/// error's position in the pickle.
struct PickleSource {
  std::string file;
  std::uint64_t offset = 0;  ///< offset of the pickle's first byte in `file`
  std::string key = {};      ///< key of the tensor or object, if known
};

/// Provides the storages in the archive that contains a pickle.
class StorageSource {
 public:
  virtual ~StorageSource() = default;
  /// Returns the little-endian bytes of the record `data/<key>`; nothing if there is no such
  /// record. The bytes are valid until the next call.
  virtual std::optional<ByteSpan> storage(std::string_view key) = 0;
};

/// The content of a bytes item or of common.pt.
///
/// Python types become values as follows. Objects of type bytes (also if written as
/// `_codecs.encode`) become Bytes, torch.dtype and bare classes become Name, and tensors become
/// TensorValue, made contiguous. Objects of type bytearray, complex, torch.Size, torch.device,
/// enums and so on become Object; an enum written as `getattr(Class, 'MEMBER')` gives the same
/// Object as `Class(value)`. A Parameter becomes an Object that calls its constructor with a
/// TensorValue. A tensor with attributes, or of a class other than torch.Tensor, becomes an Object
/// that calls `_rebuild_from_type_v2` with the class, a TensorValue and the attributes. All numpy
/// arrays become Objects in one form, see numpy_array.hpp.
struct PickledValue {
  Value value;  ///< None if the item is opaque
  /// True if the value was not interpreted. The item's bytes must then be kept unchanged.
  bool opaque = false;
  std::string reason;                       ///< why the item is opaque, for messages
  std::vector<std::string> unlisted_names;  ///< "module.name", sorted and unique, at most 64
};

/// Reads the pickle of a bytes item. If `storages` is null, tensors make the item opaque. Throws
/// TORN_FILE (malformed or truncated), REFUSED_NAME, LIMIT, UNSUPPORTED (an opcode that is not
/// allowed here, or a tensor of more than kMaxNdim dimensions), and EXTENT_MISMATCH (a view that
/// exceeds its storage).
PickledValue decode_value(ByteSpan pickle, const PickleSource& where, StorageSource* storages);
/// Reads as above, and sets `end` to the position after the pickle's STOP.
PickledValue decode_value(ByteSpan pickle, const PickleSource& where, StorageSource* storages,
                          std::size_t& end);

/// The content of a tensor item's data.pkl. Sizes and offsets are in elements unless the name says
/// bytes. The view fits into a storage of the size that the pickle claims. The caller must check
/// that the record is not smaller than that: record size >= storage_bytes().
struct TensorDescription {
  DType dtype = DType::kFloat32;
  std::string storage_key;
  std::int64_t storage_elements = 0;
  std::int64_t storage_offset = 0;
  Dims shape;
  Dims strides;
  FoldedExtents folded;  ///< of more than kMaxNdim dimensions
  bool requires_grad = false;
  SignFlips flips;  ///< flips of a lazy conjugated or negated view, not yet applied to the elements

  std::int64_t storage_bytes() const {
    return storage_elements * static_cast<std::int64_t>(size_of(dtype));
  }
};

/// Reads the pickle of a tensor item. Throws the same errors as decode_value, and UNSUPPORTED for
/// sparse or quantized tensors, unknown dtypes, and more than kMaxNdim dimensions that do not lie
/// together in memory, so that they can't be folded.
TensorDescription decode_tensor(ByteSpan pickle, const PickleSource& where);

/// Copies the tensor's elements from its storage. The result is contiguous and row-major. Throws
/// EXTENT_MISMATCH if the storage is shorter than the view needs.
Bytes gather(const TensorDescription& tensor, ByteSpan storage, const PickleSource& where);

}  // namespace reprise
