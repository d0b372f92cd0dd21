#pragma once
// Recognizes tensor items in the form in which torch (2.7 and later) and Reprise write row-major
// tensors. The bytes before and after the elements of such an item are called its frame here. Dtype
// and shape determine the whole frame except for two checksums and the 40 digits of the
// serialization id. An item with the expected frame needs no parsing.

#include <cstdint>
#include <optional>

#include "core/format/tensor_item.hpp"

namespace reprise {

class TensorFrame {
 public:
  /// Requires that too_large() is false for the item.
  TensorFrame(DType dtype, const Dims& size, const FoldedExtents& folded = {});

  const TensorItemLayout& layout() const { return layout_; }
  DType dtype() const { return item_.dtype; }
  const Dims& size() const { return item_.size; }
  const FoldedExtents& folded() const { return item_.folded; }
  std::uint64_t length() const { return layout_.length(); }  ///< length of the whole item
  std::uint64_t head_bytes() const { return item_.data_offset; }
  std::uint64_t data_bytes() const { return item_.data_bytes; }
  std::uint64_t tail_bytes() const { return layout_.tail_bytes(); }
  static constexpr std::uint64_t kRecords = 7;  ///< number of records in the item
  /// Returns the item that match() returns, but for the checksum of its elements.
  const TensorItem& unchecked() const { return item_; }

  /// Compares an item's first head_bytes() bytes and last tail_bytes() bytes with this frame.
  /// Returns the item if they match; nothing if the item must be parsed. A match also shows that
  /// all records match their stored checksums, except the elements and the serialization id, which
  /// are not checked.
  std::optional<TensorItem> match(ByteSpan head, ByteSpan tail) const;
  /// Both functions require a `tail` that matched. id_crc() returns the stored checksum of the
  /// serialization id. id_is_whole() returns true if the id has that checksum.
  std::uint32_t id_crc(ByteSpan tail) const;
  bool id_is_whole(ByteSpan tail) const;

 private:
  TensorItemLayout layout_;
  TensorItem item_;  ///< its checksum is not set
  Bytes fixed_;      ///< 0xff for tail bytes that are equal in all items, 0 for the others
};

}  // namespace reprise
