#pragma once
// A tensor item: the archive that torch.save writes for one tensor. Records in order: data.pkl,
// .format_version "1", .storage_alignment "64", byteorder "little", data/0, version "3\n",
// .data/serialization_id (40 digits). Older files have fewer; data.pkl, data/<key> and version are
// always present.

#include <cstdint>

#include "core/base/bytes.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "core/format/zip/item_source.hpp"
#include "core/geometry/dtype.hpp"
#include "reprise/tensor.hpp"

namespace reprise {

/// True if that many element bytes plus their archive exceed 64-bit offsets: together 2^62 bytes or
/// more, counting extents of 0 as 1.
bool too_large(std::size_t element_bytes, const Dims& size);

/// Position of a stored tensor's elements, checked against the slice. Element [i, j, ...] is at
/// data_offset + (storage_offset + i * strides[0] + j * strides[1] + ...) * size_of(dtype).
struct TensorItem {
  DType dtype = DType::kFloat32;
  Dims size;
  Dims strides;                     ///< in elements; not always row-major
  std::int64_t storage_offset = 0;  ///< in elements
  std::uint64_t data_offset = 0;    ///< byte offset of the storage's record in the slice
  std::uint64_t data_bytes = 0;     ///< size of that record; may exceed what the view needs
  std::uint32_t crc = 0;            ///< stored checksum of the record's data_bytes bytes
  bool byteswap = false;            ///< elements are big-endian
  SignFlips flips = {};             ///< to apply to elements after reading

  /// True if row-major without gaps, starting at the storage's first element.
  bool contiguous() const;
  std::uint64_t element_bytes() const;  ///< volume(size) * size_of(dtype)
};

/// Reads everything but the elements, in one or two reads. Does not judge checksums, because torch
/// can be told not to compute them; callers that need them compare all (Archive). Throws like
/// Archive, and also UNSUPPORTED (dtype, version, byte order), EXTENT_MISMATCH (a record shorter
/// than the claimed storage, a view that exceeds it), TORN_FILE (missing records, data.pkl is not a
/// tensor, strides that map several indices to one element).
TensorItem read_tensor_item(ItemSource& source);
TensorItem read_tensor_item(Archive& archive);

/// The bytes around a row-major tensor's elements, all known before the elements: head (up to
/// data_offset), data_bytes bytes of elements, tail.
class TensorItemLayout {
 public:
  TensorItemLayout(DType dtype, const Dims& size);

  std::uint64_t length() const { return data_offset() + data_bytes_ + tail_bytes(); }
  std::uint64_t data_offset() const { return head_.size(); }  ///< a multiple of 64
  std::uint64_t data_bytes() const { return data_bytes_; }
  std::uint64_t tail_bytes() const { return tail_.size(); }
  const Bytes& head() const { return head_; }
  /// Writes the tail_bytes() bytes after the elements; `crc` is the CRC-32 of the elements.
  void write_tail(std::uint32_t crc, MutableByteSpan out) const;
  Bytes tail(std::uint32_t crc) const;

  /// Positions in the tail that depend on the elements.
  struct Places {
    ArchiveWriter::ChecksumPlaces crc;     ///< checksum of the elements
    std::uint64_t id = 0;                  ///< the serialization id
    ArchiveWriter::ChecksumPlaces id_crc;  ///< checksum of the serialization id
  };
  const Places& places() const { return places_; }
  /// Returns a tail with zeros in these positions.
  const Bytes& blank_tail() const { return tail_; }

 private:
  std::uint64_t data_bytes_ = 0;
  std::uint64_t pickle_hash_ = 0;
  Bytes head_;
  Bytes tail_;
  Places places_;
};

}  // namespace reprise
