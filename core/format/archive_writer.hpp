#pragma once
// Writes an item's archive in the very layout of PyTorch's writer (2.7 and later).
//
//   local header (30)  flags 0x0808, 0x0800 if empty; checksum and sizes 0
//   name               "<prefix>/<record>"
//   extra              [ZIP64 field] 'FB' + u16 pad + pad x 'Z': content starts at a multiple of 64
//   content
//   descriptor         signature, crc, sizes: 16 bytes, 24 with ZIP64; none if empty
//
// ZIP64 forms where a size or a header's offset does not fit below 2^32 - 1.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise {

/// Contents start at multiples of this, relative to the item's first byte.
inline constexpr std::uint64_t kStorageAlignment = 64;

/// Yields the archive's bytes in order. Contents may be left out and placed by the caller, which
/// is how an item's length is known before its data.
class ArchiveWriter {
 public:
  explicit ArchiveWriter(std::string_view prefix) : prefix_(prefix) {}

  /// A whole record.
  void add(std::string_view name, ByteSpan content);
  /// A record up to its content, of which `size` bytes follow elsewhere.
  void begin(std::string_view name, std::uint64_t size);
  /// Closes the record opened by begin(), now that its content's checksum is known; its number.
  std::size_t end(std::uint32_t crc);
  /// Central directory and end records; nothing may follow.
  void finish();

  /// Where an item's bytes say a record's checksum: so it can be put there later.
  struct ChecksumPlaces {
    std::uint64_t directory = 0;
    std::optional<std::uint64_t> descriptor;  ///< none if the record is empty

    /// The same, in a buffer that begins at byte `begin` of the item.
    ChecksumPlaces relative_to(std::uint64_t begin) const;
    void put(std::uint32_t crc, MutableByteSpan bytes) const;
  };
  /// Of the record of that number; once finished.
  const ChecksumPlaces& checksum_places(std::size_t record) const;

  /// Offset in the item of the next byte.
  std::uint64_t position() const { return position_; }
  /// The bytes since the last call, contents placed by the caller left out.
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
