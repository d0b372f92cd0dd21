#pragma once
// What stands around the elements of a row-major tensor's item, as torch (2.7 and later) and this
// program write it. All of it follows from element type and shape but for two checksums and the
// 40 digits of the serialization id: an item that is framed so needs no parsing.

#include <cstdint>
#include <optional>

#include "core/format/tensor_item.hpp"

namespace reprise {

class TensorFrame {
 public:
  /// `size` has elements, and an item of them is possible.
  TensorFrame(DType dtype, const Dims& size);

  DType dtype() const { return item_.dtype; }
  const Dims& size() const { return item_.size; }
  std::uint64_t length() const { return layout_.length(); }  ///< of the whole item, in bytes
  std::uint64_t head_bytes() const { return item_.data_offset; }
  std::uint64_t data_bytes() const { return item_.data_bytes; }
  std::uint64_t tail_bytes() const { return layout_.tail_bytes(); }
  static constexpr std::uint64_t kRecords = 7;  ///< of the item

  /// The item, if `head` and `tail` (so many bytes as above) are those of one that is framed so;
  /// nothing if it has to be parsed. All records but the elements' and the id then have the
  /// checksums that are stored for them.
  std::optional<TensorItem> match(ByteSpan head, ByteSpan tail) const;
  /// The checksum that is stored for the serialization id in `tail`, which matched, and whether the
  /// id has it.
  std::uint32_t id_crc(ByteSpan tail) const;
  bool id_is_whole(ByteSpan tail) const;

 private:
  TensorItemLayout layout_;
  TensorItem item_;  ///< without a checksum
  Bytes fixed_;      ///< 0xff for each byte of a tail that is the same in all items, else 0
};

}  // namespace reprise
