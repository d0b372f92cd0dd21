#pragma once
// Writes an item's archive with exactly the layout of PyTorch's writer (2.7 and later).
//
//   local header (30)  flags 0x0808, 0x0800 if empty; checksum and sizes 0
//   name               "<prefix>/<record>"
//   extra              [ZIP64 field] 'FB' + u16 pad + pad x 'Z': content starts at a multiple of 64
//   content
//   descriptor         signature, crc, sizes: 16 bytes, 24 with ZIP64; none if empty
//
// ZIP64 forms are used if a size or a header offset is 2^32 - 1 or more.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise {

/// The content of each record starts at a multiple of this, counted from the item's first byte.
inline constexpr std::uint64_t kStorageAlignment = 64;

/// Produces the archive's bytes in order. The caller may write the content of a record itself, so
/// an item's length can be computed before the content is known.
class ArchiveWriter {
 public:
  explicit ArchiveWriter(std::string_view prefix) : prefix_(prefix) {}

  /// Adds a whole record, including its content.
  void add(std::string_view name, ByteSpan content);
  /// Begins a record. Its content has `size` bytes, which the caller writes itself.
  void begin(std::string_view name, std::uint64_t size);
  /// Ends the record that begin() began; `crc` is the checksum of its content. Returns the record's
  /// number.
  std::size_t end(std::uint32_t crc);
  /// Writes the central directory and the end records. Nothing may be added afterwards.
  void finish();

  /// The places in the item of a record's checksum. A writer uses them to write the checksum later.
  struct ChecksumPlaces {
    std::uint64_t directory = 0;
    std::optional<std::uint64_t> descriptor;  ///< empty if the record has no content

    /// Returns the positions relative to the start of a buffer that begins at byte `begin` of the
    /// item.
    ChecksumPlaces relative_to(std::uint64_t begin) const;
    void put(std::uint32_t crc, MutableByteSpan bytes) const;
  };
  /// Returns the positions for record number `record`. Call it after finish().
  const ChecksumPlaces& checksum_places(std::size_t record) const;

  /// Returns the offset of the next byte in the item.
  std::uint64_t position() const { return position_; }
  /// Returns the bytes produced since the last call, except contents that the caller writes itself.
  Bytes take();

 private:
  struct Entry {
    std::string name;
    std::uint64_t header_offset = 0;
    std::uint64_t size = 0;
    std::uint32_t crc = 0;
    ChecksumPlaces places;
  };

  void append_central_header(const Entry& entry);

  std::string prefix_;
  std::vector<Entry> entries_;
  Bytes pending_;
  std::uint64_t position_ = 0;
};

}  // namespace reprise
