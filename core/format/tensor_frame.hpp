#pragma once
// The bytes around the elements of a row-major tensor's item, as torch (2.7 and later) and Reprise
// write it. They follow from element type and shape, except for two checksums and the 40 digits of
// the serialization id, so that an item with this frame needs no parsing.

#include <cstdint>
#include <optional>

#include "core/format/tensor_item.hpp"

namespace reprise {

class TensorFrame {
 public:
  /// Requires elements in `size`, and an item that is not too large.
  TensorFrame(DType dtype, const Dims& size);

  DType dtype() const { return item_.dtype; }
  const Dims& size() const { return item_.size; }
  std::uint64_t length() const { return layout_.length(); }  ///< length of the whole item
  std::uint64_t head_bytes() const { return item_.data_offset; }
  std::uint64_t data_bytes() const { return item_.data_bytes; }
  std::uint64_t tail_bytes() const { return layout_.tail_bytes(); }
  static constexpr std::uint64_t kRecords = 7;  ///< records of the item

  /// Returns the item if `head` and `tail` (of the lengths above) match this frame; nothing if it
  /// must be parsed. All records except the elements and the id then match their stored
  /// checksums.
  std::optional<TensorItem> match(ByteSpan head, ByteSpan tail) const;
  /// Returns the checksum stored for the serialization id in a `tail` that matched, and if the id
  /// has that checksum.
  std::uint32_t id_crc(ByteSpan tail) const;
  bool id_is_whole(ByteSpan tail) const;

 private:
  TensorItemLayout layout_;
  TensorItem item_;  ///< checksum not set
  Bytes fixed_;      ///< 0xff for each byte of a tail that is equal in all items, else 0
};

}  // namespace reprise
