#pragma once
// Reads and writes tensor items. A tensor item is the archive that torch.save writes for one
// tensor. Its records are, in order: data.pkl, .format_version (content "1"), .storage_alignment
// ("64"), byteorder ("little"), data/0, version ("3" and a newline), .data/serialization_id (40
// digits). Older files have fewer records; data.pkl, data/<key> and version are always present.

#include <cstdint>

#include "core/base/bytes.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "core/format/zip/item_source.hpp"
#include "core/geometry/dtype.hpp"
#include "reprise/tensor.hpp"

namespace reprise {

/// True if the archive, including the elements, would exceed 2^62 bytes. In a smaller archive, no
/// offset can overflow. An extent of 0 is treated as 1.
bool too_large(std::size_t element_bytes, const Dims& size);

/// Says where the elements of a stored tensor are. All positions have been checked to lie within
/// the slice. Element [i, j, ...] is at data_offset + (storage_offset + i * strides[0] + j *
/// strides[1] + ...) * size_of(dtype).
struct TensorItem {
  DType dtype = DType::kFloat32;
  Dims size;
  Dims strides;                     ///< in elements; not always row-major
  FoldedExtents folded = {};        ///< of a tensor of more than kMaxNdim dimensions
  std::int64_t storage_offset = 0;  ///< in elements
  bool overlaps = false;            ///< true if several indices may refer to one stored element
  std::uint64_t data_offset = 0;    ///< offset of the storage's record in the slice, in bytes
  std::uint64_t data_bytes = 0;  ///< size of the storage's record; may exceed what the view needs
  std::uint32_t crc = 0;         ///< stored checksum of the storage's record
  bool byteswap = false;         ///< true if the elements are big-endian
  SignFlips flips = {};          ///< flips to apply to the elements after reading

  /// True if the elements are row-major without gaps and begin at the storage's first element.
  bool contiguous() const;
  std::uint64_t element_bytes() const;  ///< volume(size) * size_of(dtype)
};

/// Reads everything but the elements, in one or two reads. Does not verify checksums, because torch
/// can be configured not to compute them; for verification, use Archive::checksum_matches().
/// Throws the same errors as Archive. Also throws UNSUPPORTED (dtype, version, byte order, a view
/// of more elements than are stored), EXTENT_MISMATCH (a record shorter than the claimed
/// storage, a view that exceeds it), and TORN_FILE (missing records, a data.pkl that is not a
/// tensor).
TensorItem read_tensor_item(ItemSource& source);
TensorItem read_tensor_item(Archive& archive);

/// The bytes before and after the elements of a row-major tensor. An item consists of the head
/// (data_offset bytes), the elements (data_bytes bytes), and the tail. All positions are known
/// before the values of the elements are.
class TensorItemLayout {
 public:
  TensorItemLayout(DType dtype, const Dims& size, const FoldedExtents& folded = {});

  std::uint64_t length() const { return data_offset() + data_bytes_ + tail_bytes(); }
  std::uint64_t data_offset() const { return head_.size(); }  ///< a multiple of 64
  std::uint64_t data_bytes() const { return data_bytes_; }
  std::uint64_t tail_bytes() const { return tail_.size(); }
  const Bytes& head() const { return head_; }
  /// Writes the tail, which has tail_bytes() bytes and follows the elements. `crc` is the CRC-32 of
  /// the elements.
  void write_tail(std::uint32_t crc, MutableByteSpan out) const;
  Bytes tail(std::uint32_t crc) const;

  /// The places in the tail of the bytes that depend on the elements.
  struct Places {
    ArchiveWriter::ChecksumPlaces crc;     ///< checksum of the elements
    std::uint64_t id = 0;                  ///< the serialization id
    ArchiveWriter::ChecksumPlaces id_crc;  ///< checksum of the serialization id
  };
  const Places& places() const { return places_; }
  /// Returns the tail with zeros at the positions that depend on the elements.
  const Bytes& blank_tail() const { return tail_; }

 private:
  std::uint64_t data_bytes_ = 0;
  std::uint64_t pickle_hash_ = 0;
  Bytes head_;
  Bytes tail_;
  Places places_;
};

}  // namespace reprise
