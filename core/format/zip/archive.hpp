#pragma once
// Reads one item of a payload file. The item is a zip archive of uncompressed records, as
// torch.save writes it.
//
//   local header | name | extra | content | descriptor     per record
//   central header ...                                     one per record; only these are trusted
//   ZIP64 end (56) | its locator (20) | end record (22)
//
// PyTorch writes sizes and checksums in local headers as 0, so records are found only through the
// central directory. The local header is needed to locate the content: its extra field contains
// padding that aligns the content to 64 bytes. The extra field in the central header has no
// padding.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/format/zip/item_source.hpp"

namespace reprise {

/// Maximum number of records in an archive. An item has 3 to 7 records, plus one for each tensor
/// that it contains.
inline constexpr std::uint64_t kArchiveRecordsMax = 4096;

/// What an archive is: an item of a payload file, or a whole file of torch.save, which has a record
/// for each of any number of tensors.
enum class ArchiveOf : std::uint8_t { kItem, kFile };

/// Kind of an item, judging by its first bytes.
enum class ItemKind {
  kArchive,  ///< a zip archive
  kLegacy,   ///< the stream that torch.save wrote before 1.6
  kSafetensors,
  kZstd,
  kOther,
};
ItemKind item_kind_of(ByteSpan first_bytes);
/// Number of bytes that item_kind_of examines.
inline constexpr std::size_t kItemKindBytes = 15;

struct Record {
  std::string name;                 ///< such as "data.pkl" or "data/0": what follows
                                    ///< the prefix
  std::uint64_t header_offset = 0;  ///< offset of the local header in the slice
  std::uint64_t size = 0;           ///< size of the content in bytes
  std::uint64_t limit = 0;          ///< where the next record or the central directory begins
  std::uint32_t crc = 0;           ///< stored checksum; 0 if torch was configured not to compute it
  bool utf8 = false;               ///< the directory marks the name as UTF-8
  std::uint64_t entry_offset = 0;  ///< offset of its central directory entry in the slice
};

/// The validated central directory of an item: every record lies within the slice, none overlap,
/// all are stored uncompressed under one prefix, and no name occurs twice (ignoring case) or
/// contains "..". Refuses an archive that PyTorch's reader or Python's zipfile refuses, or from
/// which the two read different bytes. Reads a typical item in two steps (its tail, then its head),
/// and a small item in one step. Checks every size that the file claims before allocating that much
/// memory.
class Archive {
 public:
  /// Throws TORN_FILE (not an archive, garbled, truncated), EXTENT_MISMATCH (ranges exceed the
  /// slice or overlap), LIMIT (too many records) or UNSUPPORTED (deflated, encrypted, several
  /// disks, the stream of torch before 1.6, TorchScript in a file). `source` must outlive the
  /// archive.
  explicit Archive(ItemSource& source, ArchiveOf of = ArchiveOf::kItem);

  /// Returns the directory that contains all records: "archive", or, for example, "common" if
  /// torch.save wrote to a file named "common.pt".
  const std::string& prefix() const { return prefix_; }
  /// Returns the records in the order of their position in the slice.
  const std::vector<Record>& records() const { return records_; }
  /// Returns null if there is no such record.
  const Record* find(std::string_view name) const;
  /// Throws TORN_FILE if there is no such record.
  const Record& at(std::string_view name) const;

  /// Returns the range of the record's content in the slice; checks the local header.
  ByteRange content_range(const Record& record);
  /// Returns the record's content. Throws LIMIT if it exceeds `size_max` bytes.
  Bytes read(const Record& record, std::uint64_t size_max);
  /// True if the content matches the stored checksum. Reads the content in bounded steps unless
  /// read() has read it already. The caller decides whether a mismatch is damage, because torch can
  /// be configured not to compute checksums.
  bool checksum_matches(const Record& record);

  /// A correction: the four bytes at `offset` of the slice must have the value `value`.
  struct Patch {
    std::uint64_t offset = 0;
    std::uint32_t value = 0;
  };
  /// Finds the checksums that are stored as 0. Returns, sorted by position, the patches that
  /// replace them by the checksums of the contents. Reads the contents of these records in bounded
  /// steps.
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
  /// True if `full_name` is "<prefix>/<record>".
  bool is_name_of(const Record& record, std::string_view full_name) const;
  Checksum& checksum_of(const Record& record);
  std::uint32_t checksum_of_content(const ByteRange& content);

  ItemSource& source_;
  ArchiveOf of_;
  std::vector<Window> windows_;
  std::string prefix_;
  std::vector<Record> records_;
  std::vector<Checksum> checksums_;  ///< one per record
};

}  // namespace reprise
