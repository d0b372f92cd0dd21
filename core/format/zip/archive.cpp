#include "core/format/zip/archive.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/check.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/format/zip/zip_layout.hpp"

namespace reprise {

namespace {

// A read fetches at least this many bytes. The head and the tail of a typical tensor item are
// shorter.
constexpr std::uint64_t kWindowBytes = 4096;
constexpr std::size_t kWindowsKept = 4;
// An end record may be followed by a comment, whose length is 16 bits.
constexpr std::uint64_t kEndSearchBytes = zip::kEndBytes + 0xffff;
// PyTorch's reader finds the end record of a small archive in its last 4096 bytes only.
constexpr std::uint64_t kCommentMax = 4096 - zip::kEndBytes;
// A directory entry has 46 fixed bytes, then a name and little else, so 1024 bytes are enough.
constexpr std::uint64_t kDirectoryBytesMax = kArchiveRecordsMax * 1024;
constexpr std::uint64_t kChecksumStep = std::uint64_t{256} << 10U;

// Files that torch.save wrote before version 1.6 start with the pickled number
// 0x1950a86a20f9469cfc6c.
constexpr std::array<unsigned char, kItemKindBytes> kLegacyMagic = {
    0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};

constexpr std::uint32_t kZstdMagic = 0xfd2fb528;
constexpr std::uint64_t kSafetensorsHeaderMax = 100'000'000;  // limit of safetensors' readers

std::uint16_t u16(ByteSpan bytes, std::size_t at) {
  return load_le<std::uint16_t>(bytes.subspan(at));
}
std::uint32_t u32(ByteSpan bytes, std::size_t at) {
  return load_le<std::uint32_t>(bytes.subspan(at));
}
std::uint64_t u64(ByteSpan bytes, std::size_t at) {
  return load_le<std::uint64_t>(bytes.subspan(at));
}

// Flags that a record may have: the two compression hints, the descriptor, and UTF-8. Any other
// flag is refused: either some reader does not accept it (encryption, patches, masked headers), or
// no writer sets it.
constexpr unsigned kFlagsKnown = zip::kFlagDescriptor | zip::kFlagUtf8 | 0x0006U;

// Records that a reader treats as optional. A name that differs from these only in case is refused,
// because PyTorch's reader ignores case in names and Python's zipfile does not.
constexpr std::array<std::string_view, 5> kOptionalNames = {
    "byteorder", "version", ".data/version", ".format_version", ".storage_alignment"};

// torch.load takes an archive with this record for TorchScript, and does not read it as
// torch.save's.
constexpr std::string_view kScriptRecord = "constants.pkl";
constexpr std::string_view kOfTorchScript =
    "a TorchScript archive, which has code beside its tensors; make a file of its tensors: "
    "torch.save(torch.jit.load(FILE).state_dict(), NEW)";

// Returns a number from 0 to 255. Names are sorted by these numbers.
unsigned lower_case(char c) {
  return static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool same_but_for_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](char c) { return lower_case(c); }, [](char c) { return lower_case(c); });
}

bool is_ascii(std::string_view name) {
  return std::ranges::all_of(name,
                             [](char c) { return (static_cast<unsigned char>(c) & 0x80U) == 0; });
}

// If a field is all ones (0xffffffff), its actual value is in the ZIP64 extra field, in 64 bits.
// Replaces each such field of `fields` by the actual value. The ZIP64 extra field contains only
// these values, in the order of `fields`. False if a value is missing.
bool widen(ByteSpan extra, std::array<std::uint64_t*, 3> fields) {
  ByteSpan wide;
  while (extra.size() >= 4) {
    const std::size_t length = u16(extra, 2);
    if (length > extra.size() - 4) return false;
    if (u16(extra, 0) == zip::kWideExtra) wide = extra.subspan(4, length);
    extra = extra.subspan(4 + length);
  }
  for (std::uint64_t* field : fields) {
    if (*field != zip::kSaturated32) continue;
    if (wide.size() < 8) return false;
    *field = u64(wide, 0);
    wide = wide.subspan(8);
  }
  return true;
}

// True if the extra field consists of complete entries: 2 bytes of id, 2 bytes of length, content.
// If bytes are left after the last entry, the stated length of the extra field is wrong, and so is
// the position of the data after the extra field.
bool well_formed_extra(ByteSpan extra) {
  while (extra.size() >= 4) {
    const std::size_t length = u16(extra, 2);
    if (length > extra.size() - 4) return false;
    extra = extra.subspan(4 + length);
  }
  return extra.empty();
}

// True if all readers interpret the extra field in the same way. If two entries have the same id,
// PyTorch's reader uses the first of them, and other readers use the last. If the extra field
// contains a name, some readers prefer it to the record's own name.
bool unambiguous_extra(ByteSpan extra) {
  std::size_t wide = 0;
  for (; extra.size() >= 4; extra = extra.subspan(4 + u16(extra, 2))) {
    if (u16(extra, 0) == zip::kUnicodeNameExtra) return false;
    if (u16(extra, 0) == zip::kWideExtra) ++wide;
  }
  return wide <= 1;
}

bool agrees(std::uint64_t narrow, std::uint64_t saturated, std::uint64_t wide) {
  return narrow == saturated || narrow == wide;
}

bool leaves_folder(std::string_view name) {
  return name.find("..") != std::string_view::npos || name.find('\0') != std::string_view::npos ||
         name.find('\\') != std::string_view::npos || name.find("//") != std::string_view::npos;
}

}  // namespace

ItemKind item_kind_of(ByteSpan first_bytes) {
  if (first_bytes.size() >= 4 && u32(first_bytes, 0) == zip::kLocalSignature) {
    return ItemKind::kArchive;
  }
  const auto magic = std::as_bytes(std::span(kLegacyMagic));
  if (first_bytes.size() >= magic.size() &&
      std::ranges::equal(first_bytes.first(magic.size()), magic)) {
    return ItemKind::kLegacy;
  }
  if (first_bytes.size() >= 4 && u32(first_bytes, 0) == kZstdMagic) return ItemKind::kZstd;
  // A safetensors file begins with the length of a JSON object, then the object.
  if (first_bytes.size() > 9 && u64(first_bytes, 0) < kSafetensorsHeaderMax &&
      as_text(first_bytes.subspan(8, 2)) == "{\"") {
    return ItemKind::kSafetensors;
  }
  return ItemKind::kOther;
}

Archive::Archive(ItemSource& source, ArchiveOf of) : source_(source), of_(of) {
  check_kind();
  const End end = read_end();
  read_directory(end);
  check_layout(end.directory.offset);
  check_names();
  checksums_.assign(records_.size(), Checksum::kUnknown);
}

void Archive::check_kind() {
  if (source_.size() < zip::kEndBytes) {
    source_.fail(Code::kTornFile,
                 "too short for an archive: " + std::to_string(source_.size()) + " bytes", 0);
  }
  if (source_.size() <= 2 * kWindowBytes) fetch({0, source_.size()});
  switch (item_kind_of(fetch({0, kItemKindBytes}))) {
    case ItemKind::kArchive:
      return;
    case ItemKind::kLegacy:
      source_.fail(Code::kUnsupported,
                   "written by torch.save before 1.6; load and save it again with a newer torch",
                   0);
    case ItemKind::kSafetensors:
      source_.fail(Code::kUnsupported,
                   "written as safetensors, which is not supported: save it with torch.save", 0);
    case ItemKind::kZstd:
      source_.fail(Code::kUnsupported,
                   "compressed with zstd, which is not read here: load it with torch, and save it "
                   "without _extensions",
                   0);
    case ItemKind::kOther:
      source_.fail(Code::kTornFile, "the item does not begin with an archive's record", 0);
  }
}

const Record* Archive::find(std::string_view name) const {
  const auto found = std::ranges::find(records_, name, &Record::name);
  return found == records_.end() ? nullptr : &*found;
}

const Record& Archive::at(std::string_view name) const {
  const Record* record = find(name);
  if (record == nullptr) {
    source_.fail(Code::kTornFile, "the archive has no record '" + std::string(name) + "'", 0);
  }
  return *record;
}

ByteSpan Archive::fetch(ByteRange range) {
  for (const Window& window : windows_) {
    if (range.offset >= window.offset &&
        ByteRange{range.offset - window.offset, range.size}.fits(window.bytes.size())) {
      return ByteSpan(window.bytes).subspan(range.offset - window.offset, range.size);
    }
  }
  ByteRange wanted = range;
  if (range.fits(source_.size())) {
    wanted.size = std::min(std::max(range.size, kWindowBytes), source_.size() - range.offset);
  }
  Bytes bytes = read_range(source_, wanted);
  if (windows_.size() == kWindowsKept) windows_.erase(windows_.begin());
  windows_.push_back({range.offset, std::move(bytes)});
  return ByteSpan(windows_.back().bytes).first(range.size);
}

// Finds the end record at the last occurrence of its signature, whatever follows it. Python's
// zipfile and PyTorch's reader do the same.
std::uint64_t Archive::find_end_record() {
  const std::uint64_t size = source_.size();
  const std::uint64_t window = std::min(size, kWindowBytes);
  const ByteSpan last = fetch({size - window, window}).last(zip::kEndBytes);
  if (u32(last, 0) == zip::kEndSignature && u16(last, 20) == 0) {
    return size - zip::kEndBytes;
  }
  const std::uint64_t searched = std::min(size, kEndSearchBytes);
  const ByteSpan tail = fetch({size - searched, searched});
  for (std::size_t at = tail.size() - sizeof(zip::kEndSignature) + 1; at-- > 0;) {
    if (u32(tail, at) != zip::kEndSignature) continue;
    if (at + zip::kEndBytes > tail.size() ||
        u16(tail, at + 20) > tail.size() - at - zip::kEndBytes) {
      source_.fail(Code::kTornFile, "the archive's last end record or its comment is truncated",
                   size - searched + at);
    }
    if (u16(tail, at + 20) > kCommentMax) {
      source_.fail(Code::kTornFile,
                   "a comment of " + std::to_string(u16(tail, at + 20)) +
                       " bytes follows the archive; PyTorch's reader finds the archive's end "
                       "before at most " +
                       std::to_string(kCommentMax),
                   size - searched + at);
    }
    return size - searched + at;
  }
  source_.fail(Code::kTornFile,
               "the item's last bytes have no end record of an archive; the item is truncated or "
               "overwritten",
               size);
}

Archive::End Archive::read_end() {
  const std::uint64_t at = find_end_record();
  const ByteSpan record = fetch({at, zip::kEndBytes});
  if (u16(record, 4) != 0 || u16(record, 6) != 0) {
    source_.fail(Code::kUnsupported, "an archive that spans several disks", at);
  }
  if (u16(record, 8) != u16(record, 10)) {
    source_.fail(Code::kTornFile, "the archive's end record contradicts itself", at);
  }
  End end{.records = u16(record, 10), .directory = {u32(record, 16), u32(record, 12)}};
  std::uint64_t limit = at;
  if (const auto wide_at = find_wide_end(at)) {
    const End wide = read_wide_end(*wide_at);
    if (!agrees(end.records, zip::kSaturated16, wide.records) ||
        !agrees(end.directory.size, zip::kSaturated32, wide.directory.size) ||
        !agrees(end.directory.offset, zip::kSaturated32, wide.directory.offset)) {
      source_.fail(Code::kTornFile, "the archive's two end records disagree", at);
    }
    end = wide;
    limit = *wide_at;
  }
  // The directory must end where the end record begins. Readers disagree about a gap between the
  // two: Python's zipfile, for example, adds the length of the gap to the offset of every record.
  if (!end.directory.fits(limit) || end.directory.offset + end.directory.size != limit) {
    source_.fail(Code::kExtentMismatch, "the archive's directory is not where its end record says",
                 at);
  }
  return end;
}

// Returns the start of the ZIP64 end record if a locator precedes the end record. Python's zipfile
// expects the ZIP64 end record right before the locator. PyTorch's reader expects it at the
// position that the locator states.
std::optional<std::uint64_t> Archive::find_wide_end(std::uint64_t end_record) {
  if (end_record < zip::kWideLocatorBytes) return std::nullopt;
  const std::uint64_t at = end_record - zip::kWideLocatorBytes;
  const ByteSpan locator = fetch({at, zip::kWideLocatorBytes});
  if (u32(locator, 0) != zip::kWideLocatorSignature) return std::nullopt;
  if (u32(locator, 4) != 0 || u32(locator, 16) != 1) {
    source_.fail(Code::kTornFile, "the locator of the archive's ZIP64 end record names other disks",
                 at);
  }
  const std::uint64_t wide_at = u64(locator, 8);
  if (at < zip::kWideEndBytes || wide_at != at - zip::kWideEndBytes) {
    source_.fail(Code::kExtentMismatch,
                 "the archive's ZIP64 end record is not right before its locator", at);
  }
  return wide_at;
}

Archive::End Archive::read_wide_end(std::uint64_t offset) {
  constexpr std::uint64_t kLength = zip::kWideEndBytes - 12;  // bytes after the length field
  const ByteSpan record = fetch({offset, zip::kWideEndBytes});
  if (u32(record, 0) != zip::kWideEndSignature || u64(record, 4) != kLength ||
      u32(record, 16) != 0 || u32(record, 20) != 0 || u64(record, 24) != u64(record, 32)) {
    source_.fail(Code::kTornFile, "the archive's ZIP64 end record is garbled", offset);
  }
  return {.records = u64(record, 32), .directory = {u64(record, 48), u64(record, 40)}};
}

void Archive::read_directory(const End& end) {
  const ByteRange range = end.directory;
  const bool too_many = end.records > kArchiveRecordsMax || range.size > kDirectoryBytesMax;
  if (of_ == ArchiveOf::kItem && too_many) {
    source_.fail(Code::kLimit,
                 "the archive claims " + std::to_string(end.records) + " records in " +
                     std::to_string(range.size) + " bytes of directory; at most " +
                     std::to_string(kArchiveRecordsMax) + " are supported",
                 range.offset);
  }
  const ByteSpan directory = fetch(range);
  if (end.records > range.size / zip::kCentralBytes) {
    source_.fail(Code::kTornFile, "the archive's directory is shorter than its records",
                 range.offset);
  }
  records_.reserve(end.records);
  std::size_t at = 0;
  for (std::uint64_t n = 0; n < end.records; ++n) {
    std::size_t used = 0;
    records_.push_back(read_entry(directory.subspan(at), range.offset + at, used));
    at += used;
  }
  if (at != directory.size()) {
    source_.fail(Code::kTornFile, "the archive's directory is longer than its records",
                 range.offset + at);
  }
  if (records_.empty()) source_.fail(Code::kTornFile, "an archive without records", range.offset);
}

Record Archive::read_entry(ByteSpan rest, std::uint64_t offset, std::size_t& used) {
  if (rest.size() < zip::kCentralBytes || u32(rest, 0) != zip::kCentralSignature) {
    source_.fail(Code::kTornFile, "an entry of the archive's directory is missing or garbled",
                 offset);
  }
  const std::size_t name_length = u16(rest, 28);
  const std::size_t extra_length = u16(rest, 30);
  used = zip::kCentralBytes + name_length + extra_length + u16(rest, 32);
  if (used > rest.size()) {
    source_.fail(Code::kTornFile, "an entry extends beyond the archive's directory", offset);
  }
  Record record{.header_offset = u32(rest, 42),
                .size = u32(rest, 24),
                .crc = u32(rest, 16),
                .entry_offset = offset};
  adopt_name(record, as_text(rest.subspan(zip::kCentralBytes, name_length)), offset);
  record.utf8 = (u16(rest, 8) & zip::kFlagUtf8) != 0;
  std::uint64_t packed_size = u32(rest, 20);
  const ByteSpan extra = rest.subspan(zip::kCentralBytes + name_length, extra_length);
  if (!well_formed_extra(extra) || !unambiguous_extra(extra) ||
      !widen(extra, {&record.size, &packed_size, &record.header_offset})) {
    source_.fail(Code::kTornFile, "an extra field of the archive's directory is garbled", offset);
  }
  check_storable(record, rest, offset);
  if (packed_size != record.size || u16(rest, 34) != 0) {
    source_.fail(Code::kTornFile, "record '" + record.name + "' contradicts itself", offset);
  }
  return record;
}

// `entry` is the record's entry in the directory.
void Archive::check_storable(const Record& record, ByteSpan entry, std::uint64_t offset) {
  const std::uint16_t flags = u16(entry, 8);
  const std::uint16_t method = u16(entry, 10);
  const bool encrypted = (flags & zip::kFlagEncrypted) != 0;
  if (method == zip::kMethodDeflated || encrypted) {
    // The header's position is not yet known to be valid. It is checked after all entries are read.
    const ByteRange header{record.header_offset, zip::kLocalBytes};
    const ByteSpan local = header.fits(source_.size()) ? fetch(header) : ByteSpan();
    if (of_ == ArchiveOf::kFile && record.name.starts_with("code/")) {
      source_.fail(Code::kUnsupported, std::string(kOfTorchScript), offset);
    }
    if (local.empty() || u16(local, 8) != method ||
        (u16(local, 6) & zip::kFlagEncrypted) != (flags & zip::kFlagEncrypted)) {
      source_.fail(Code::kTornFile,
                   "record '" + record.name +
                       "' is compressed or encrypted by the directory, and "
                       "not by its own header",
                   offset);
    }
    source_.fail(Code::kUnsupported,
                 "record '" + record.name + "' is compressed or encrypted (method " +
                     std::to_string(method) + "); only stored records are supported",
                 offset);
  }
  if (method != zip::kMethodStored || (flags & ~kFlagsKnown) != 0 ||
      (u16(entry, 6) & 0xffU) > zip::kVersionMax) {
    source_.fail(Code::kTornFile,
                 "record '" + record.name +
                     "' uses a feature that no reader of torch's files supports (version " +
                     std::to_string(u16(entry, 6) & 0xffU) + ", flags " + std::to_string(flags) +
                     ", method " + std::to_string(method) + ")",
                 offset);
  }
  const bool directory =
      (u32(entry, 38) & zip::kDirectoryAttribute) != 0 || record.name.ends_with('/');
  if (directory && record.size != 0) {
    source_.fail(
        Code::kTornFile,
        "record '" + record.name + "' is marked as a directory: torch reads none of its bytes",
        offset);
  }
}

void Archive::adopt_name(Record& record, std::string_view full_name, std::uint64_t offset) {
  const std::size_t slash = full_name.find('/');
  const bool first = prefix_.empty();
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == full_name.size() ||
      leaves_folder(full_name) || (!first && full_name.substr(0, slash) != prefix_)) {
    source_.fail(Code::kTornFile,
                 "a record's name is not '<archive>/<record>' with one archive for all", offset);
  }
  if (first) prefix_ = full_name.substr(0, slash);
  record.name = full_name.substr(slash + 1);
}

// Checks that the records do not overlap. The lengths of the extra fields in the local headers are
// not known yet and are taken as 0; content_range() checks again with the actual lengths.
void Archive::check_layout(std::uint64_t directory_offset) {
  std::ranges::stable_sort(records_, {}, &Record::header_offset);
  std::uint64_t limit = directory_offset;
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    const std::uint64_t header = zip::kLocalBytes + prefix_.size() + 1 + record->name.size();
    record->limit = limit;
    if (!ByteRange{record->header_offset, header}.fits(limit) ||
        record->size > limit - record->header_offset - header) {
      source_.fail(Code::kExtentMismatch,
                   "record '" + record->name + "' claims " + std::to_string(record->size) +
                       " bytes from " + std::to_string(record->header_offset) +
                       " on, so it overlaps the next record or extends beyond the item",
                   std::min(record->header_offset, source_.size()));
    }
    limit = record->header_offset;
  }
}

void Archive::check_names() {
  std::vector<const Record*> sorted;
  sorted.reserve(records_.size());
  for (const Record& record : records_) sorted.push_back(&record);
  std::ranges::stable_sort(sorted, [](const Record* a, const Record* b) {
    return std::ranges::lexicographical_compare(
        a->name, b->name, {}, [](char c) { return lower_case(c); },
        [](char c) { return lower_case(c); });
  });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const Record* const record = sorted[i];
    if (i != 0 && same_but_for_case(sorted[i - 1]->name, record->name)) {
      source_.fail(Code::kTornFile, "record '" + record->name + "' occurs twice",
                   record->header_offset);
    }
    if (record->name == kScriptRecord && of_ == ArchiveOf::kFile) {
      source_.fail(Code::kUnsupported, std::string(kOfTorchScript), record->header_offset);
    }
    if (record->name == kScriptRecord) {
      source_.fail(Code::kTornFile,
                   "it has the record 'constants.pkl', so torch takes it to be TorchScript, which "
                   "no checkpoint contains",
                   record->header_offset);
    }
    for (const std::string_view name : kOptionalNames) {
      if (name == record->name || !same_but_for_case(name, record->name)) continue;
      source_.fail(Code::kTornFile,
                   "record '" + record->name + "' should be named '" + std::string(name) + "'",
                   record->header_offset);
    }
  }
}

bool Archive::is_name_of(const Record& record, std::string_view full_name) const {
  return full_name.starts_with(prefix_) && full_name.substr(prefix_.size()).starts_with('/') &&
         full_name.substr(prefix_.size() + 1) == record.name;
}

ByteRange Archive::content_range(const Record& record) {
  const std::size_t name_size = prefix_.size() + 1 + record.name.size();
  const std::uint64_t fixed = zip::kLocalBytes + name_size;
  const ByteSpan header = fetch({record.header_offset, fixed});
  if (u32(header, 0) != zip::kLocalSignature || u16(header, 26) != name_size ||
      !is_name_of(record, as_text(header.subspan(zip::kLocalBytes))) ||
      u16(header, 8) != zip::kMethodStored || (u16(header, 6) & zip::kFlagEncrypted) != 0 ||
      (!is_ascii(record.name) && ((u16(header, 6) & zip::kFlagUtf8) != 0) != record.utf8)) {
    source_.fail(Code::kTornFile,
                 "the local header of record '" + record.name + "' does not match the directory",
                 record.header_offset);
  }
  const std::size_t extra_size = u16(header, 28);
  const ByteRange content{record.header_offset + fixed + extra_size, record.size};
  if (!content.fits(record.limit)) {
    source_.fail(Code::kExtentMismatch,
                 "record '" + record.name + "' of " + std::to_string(record.size) +
                     " bytes overlaps what follows it",
                 record.header_offset);
  }
  const ByteSpan whole = fetch({record.header_offset, fixed + extra_size});
  if (!well_formed_extra(whole.subspan(fixed))) {
    source_.fail(Code::kTornFile,
                 "the extra field before the content of record '" + record.name + "' is garbled",
                 record.header_offset);
  }
  return content;
}

Bytes Archive::read(const Record& record, std::uint64_t size_max) {
  if (record.size > size_max) {
    source_.fail(Code::kLimit,
                 "record '" + record.name + "' has " + std::to_string(record.size) +
                     " bytes; at most " + std::to_string(size_max) + " are supported",
                 record.header_offset);
  }
  const ByteRange content = content_range(record);
  Bytes bytes;
  if (content.size > kWindowBytes) {
    bytes = read_range(source_, content);
  } else {
    const ByteSpan found = fetch(content);
    bytes.assign(found.begin(), found.end());
  }
  checksum_of(record) = crc32_of(bytes) == record.crc ? Checksum::kMatches : Checksum::kDiffers;
  return bytes;
}

bool Archive::checksum_matches(const Record& record) {
  Checksum& known = checksum_of(record);
  if (known != Checksum::kUnknown) return known == Checksum::kMatches;
  const ByteRange content = content_range(record);
  known = checksum_of_content(content) == record.crc ? Checksum::kMatches : Checksum::kDiffers;
  return known == Checksum::kMatches;
}

std::uint32_t Archive::checksum_of_content(const ByteRange& content) {
  Crc32 crc;
  Bytes block(static_cast<std::size_t>(std::min(content.size, kChecksumStep)));
  for (std::uint64_t done = 0; done < content.size; done += block.size()) {
    block.resize(static_cast<std::size_t>(std::min(content.size - done, kChecksumStep)));
    source_.read_at(content.offset + done, block);
    crc.update(block);
  }
  return crc.value();
}

std::vector<Archive::Patch> Archive::missing_checksums() {
  std::vector<Patch> patches;
  for (const Record& record : records_) {
    if (record.crc != 0 || record.size == 0) continue;
    const ByteRange content = content_range(record);
    const std::uint32_t crc = checksum_of_content(content);
    if (crc == 0) continue;
    patches.push_back({record.entry_offset + zip::kCentralCrcAt, crc});
    const bool described =
        (u16(fetch({record.header_offset, zip::kLocalBytes}), 6) & zip::kFlagDescriptor) != 0;
    const std::uint64_t end = content.offset + content.size;
    if (!described) {
      patches.push_back({record.header_offset + zip::kLocalCrcAt, crc});
    } else if (ByteRange{end, 8}.fits(source_.size()) &&
               u32(fetch({end, 8}), 0) == zip::kDescriptorSignature) {
      patches.push_back({end + 4, crc});
    }
  }
  std::ranges::sort(patches, {}, &Patch::offset);
  return patches;
}

Archive::Checksum& Archive::checksum_of(const Record& record) {
  const auto index = static_cast<std::size_t>(&record - records_.data());
  CHECK(index < checksums_.size());
  return checksums_[index];
}

}  // namespace reprise
