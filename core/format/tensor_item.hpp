#pragma once
// A tensor item: the archive that torch.save writes for one tensor. Records in order: data.pkl,
// .format_version "1", .storage_alignment "64", byteorder "little", data/0, version "3\n",
// .data/serialization_id (40 digits). Older files have fewer; data.pkl, data/<key> and version are
// always there.

#include <cstdint>

#include "core/base/bytes.hpp"
#include "core/format/archive.hpp"
#include "core/format/archive_writer.hpp"
#include "core/format/item_source.hpp"
#include "core/geometry/dtype.hpp"
#include "reprise/tensor.hpp"

namespace reprise {

/// Elements of so many bytes, and an archive around them, would have no 64-bit offsets: together
/// 2^62 bytes or more, where extents of 0 count as 1.
bool too_large(std::size_t element_bytes, const Dims& size);

/// Where the elements of a stored tensor are, all checked against the slice. Element [i, j, ...] is
/// at data_offset + (storage_offset + i * strides[0] + j * strides[1] + ...) * size_of(dtype).
struct TensorItem {
  DType dtype = DType::kFloat32;
  Dims size;
  Dims strides;                     ///< in elements; not always row-major
  std::int64_t storage_offset = 0;  ///< in elements
  std::uint64_t data_offset = 0;    ///< of the storage's record in the slice, in bytes
  std::uint64_t data_bytes = 0;     ///< of the record; may exceed what the view needs
  std::uint32_t crc = 0;            ///< of the record's data_bytes bytes, as stored
  bool byteswap = false;            ///< elements are big-endian
  SignFlips flips = {};             ///< to be applied to elements that were read

  /// Row-major, without gaps, from the storage's first element on.
  bool contiguous() const;
  std::uint64_t element_bytes() const;  ///< of the elements: volume(size) * size_of(dtype)
};

/// Reads everything but the elements, in one or two reads. Checksums are not judged, because torch
/// may be told not to compute them: who needs to know compares all of them (Archive). Beyond what
/// Archive refuses: UNSUPPORTED (dtype, version, byte order), EXTENT_MISMATCH (a record shorter
/// than the storage that is claimed, a view that leaves it), TORN_FILE (records missing, data.pkl
/// is no tensor, strides under which elements fall together).
TensorItem read_tensor_item(ItemSource& source);
TensorItem read_tensor_item(Archive& archive);

/// The bytes around a row-major tensor's elements, all known before the elements are:
/// head (up to data_offset), data_bytes bytes of elements, tail.
class TensorItemLayout {
 public:
  TensorItemLayout(DType dtype, const Dims& size);

  std::uint64_t length() const { return data_offset() + data_bytes_ + tail_bytes(); }
  std::uint64_t data_offset() const { return head_.size(); }  ///< a multiple of 64
  std::uint64_t data_bytes() const { return data_bytes_; }
  std::uint64_t tail_bytes() const { return tail_.size(); }
  const Bytes& head() const { return head_; }
  /// What follows the elements, tail_bytes() long; `crc` is the elements' CRC-32.
  void write_tail(std::uint32_t crc, MutableByteSpan out) const;
  Bytes tail(std::uint32_t crc) const;

  /// Where a tail depends on the elements.
  struct Places {
    ArchiveWriter::ChecksumPlaces crc;     ///< of the elements
    std::uint64_t id = 0;                  ///< the serialization id
    ArchiveWriter::ChecksumPlaces id_crc;  ///< of the serialization id
  };
  const Places& places() const { return places_; }
  /// A tail with zeros in these places.
  const Bytes& blank_tail() const { return tail_; }

 private:
  std::uint64_t data_bytes_ = 0;
  std::uint64_t pickle_hash_ = 0;
  Bytes head_;
  Bytes tail_;
  Places places_;
};

}  // namespace reprise
