#pragma once
// One item of a payload file: a zip archive of stored records, as torch.save writes it.
//
//   local header | name | extra | content | descriptor     per record
//   central header ...                                     one per record: the only trusted list
//   ZIP64 end (56) | its locator (20) | end record (22)
//
// Sizes and checksums in local headers are 0 in PyTorch's files, so records are found through the
// central directory alone; the local header says only where the content starts, because its extra
// field (padding to 64 bytes) is not the central one's.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/format/item_source.hpp"

namespace reprise {

/// Most records that an archive may have; an item has 3 to 7 and one per tensor inside.
inline constexpr std::uint64_t kArchiveRecordsMax = 4096;

/// What an item's first bytes say it is.
enum class ItemKind {
  kArchive,  ///< a zip archive
  kLegacy,   ///< the stream that torch.save wrote before 1.6
  kSafetensors,
  kZstd,
  kOther,
};
ItemKind item_kind_of(ByteSpan first_bytes);
/// How many bytes item_kind_of looks at.
inline constexpr std::size_t kItemKindBytes = 15;

struct Record {
  std::string name;                 ///< without the archive's prefix: "data.pkl", "data/0"
  std::uint64_t header_offset = 0;  ///< of the local header, in the slice
  std::uint64_t size = 0;           ///< bytes of content
  std::uint64_t limit = 0;          ///< where the next record or the central directory begins
  std::uint32_t crc = 0;            ///< as stored; torch may be told to store a wrong one
  bool utf8 = false;                ///< the directory says that the name is UTF-8
  std::uint64_t entry_offset = 0;   ///< of its entry in the central directory, in the slice
};

/// The central directory of an item, checked: every record lies within the slice, none overlap, all
/// are stored uncompressed under one prefix, no name occurs twice (whatever its case) or has "..".
/// Where PyTorch's reader and Python's zipfile would find other bytes than each other, or one of
/// them refuses, the archive is refused. Two reads for the usual item (its tail, its head), one if
/// it is small; nothing is allocated by claim.
class Archive {
 public:
  /// Throws TORN_FILE (not an archive, garbled, cut), EXTENT_MISMATCH (ranges leave the slice or
  /// overlap), LIMIT (too many records) or UNSUPPORTED (deflated, encrypted, several disks, the
  /// stream of torch before 1.6). `source` outlives the archive.
  explicit Archive(ItemSource& source);

  /// "archive", or the file's stem for torch.save(value, "common.pt").
  const std::string& prefix() const { return prefix_; }
  /// In the order of their place in the slice.
  const std::vector<Record>& records() const { return records_; }
  /// Null if there is none.
  const Record* find(std::string_view name) const;
  /// TORN_FILE if there is none.
  const Record& at(std::string_view name) const;

  /// Where the record's content lies in the slice; checks the local header.
  ByteRange content_range(const Record& record);
  /// The record's content; LIMIT above `size_max` bytes.
  Bytes read(const Record& record, std::uint64_t size_max);
  /// True if the content has the stored checksum; read in bounded steps unless read() has seen it.
  /// A difference is for the caller to judge: torch may be told not to compute them.
  bool checksum_matches(const Record& record);

  /// Four bytes of the slice, and what is right for them.
  struct Patch {
    std::uint64_t offset = 0;
    std::uint32_t value = 0;
  };
  /// Where records have 0 for a checksum and their content another one: what makes it right, by
  /// place. Reads those records in bounded steps.
  std::vector<Patch> missing_checksums();

  ItemSource& source() { return source_; }

 private:
  enum class Checksum : std::uint8_t { kUnknown, kMatches, kDiffers };
  struct Window {
    std::uint64_t offset = 0;
    Bytes bytes;
  };
  struct End {
    std::uint64_t records = 0;
    ByteRange directory;
  };

  ByteSpan fetch(ByteRange range);
  void check_kind();
  std::uint64_t find_end_record();
  End read_end();
  std::optional<std::uint64_t> find_wide_end(std::uint64_t end_record);
  End read_wide_end(std::uint64_t offset);
  void read_directory(const End& end);
  Record read_entry(ByteSpan rest, std::uint64_t offset, std::size_t& used);
  void check_storable(const Record& record, ByteSpan entry, std::uint64_t offset);
  void adopt_name(Record& record, std::string_view full_name, std::uint64_t offset);
  void check_layout(std::uint64_t directory_offset);
  void check_names();
  /// "<prefix>/<record>"
  bool is_name_of(const Record& record, std::string_view full_name) const;
  Checksum& checksum_of(const Record& record);
  std::uint32_t checksum_of_content(const ByteRange& content);

  ItemSource& source_;
  std::vector<Window> windows_;
  std::string prefix_;
  std::vector<Record> records_;
  std::vector<Checksum> checksums_;  ///< as records_
};

}  // namespace reprise
