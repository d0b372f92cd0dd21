#include "core/format/archive.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/format/crc32.hpp"
#include "core/format/zip_layout.hpp"

namespace reprise {

namespace {

// One read fetches at least this much: more than the head and the tail of a usual tensor item.
constexpr std::uint64_t kWindowBytes = 4096;
constexpr std::size_t kWindowsKept = 4;
// An end record may be followed by a comment, whose length is 16 bits.
constexpr std::uint64_t kEndSearchBytes = zip::kEndBytes + 0xffff;
// A directory entry is 46 bytes, a name and little else.
constexpr std::uint64_t kDirectoryBytesMax = kArchiveRecordsMax * 1024;
constexpr std::uint64_t kChecksumStep = std::uint64_t{1} << 20U;

// torch.save before 1.6 starts with the pickled number 0x1950a86a20f9469cfc6c.
constexpr std::array<unsigned char, kItemKindBytes> kLegacyMagic = {
    0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};

std::uint16_t u16(ByteSpan bytes, std::size_t at) {
  return load_le<std::uint16_t>(bytes.subspan(at));
}
std::uint32_t u32(ByteSpan bytes, std::size_t at) {
  return load_le<std::uint32_t>(bytes.subspan(at));
}
std::uint64_t u64(ByteSpan bytes, std::size_t at) {
  return load_le<std::uint64_t>(bytes.subspan(at));
}

// Replaces saturated 32-bit fields by the 64-bit values of the ZIP64 extra field, which holds only
// those, in this order. False if one is missing.
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
  return ItemKind::kOther;
}

Archive::Archive(ItemSource& source) : source_(source) {
  if (source_.size() < kItemKindBytes) {
    source_.fail(Code::kTornFile, "too short for an archive: " + std::to_string(source_.size()) +
                                      " bytes", 0);
  }
  if (source_.size() <= 2 * kWindowBytes) fetch({0, source_.size()});
  const End end = read_end();
  switch (item_kind_of(fetch({0, kItemKindBytes}))) {
    case ItemKind::kArchive:
      break;
    case ItemKind::kLegacy:
    case ItemKind::kOther:
      source_.fail(Code::kTornFile, "the item does not begin with an archive's record", 0);
  }
  read_directory(end);
  check_layout(end.directory.offset);
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

std::uint64_t Archive::find_end_record() {
  const std::uint64_t size = source_.size();
  if (size < zip::kEndBytes) {
    source_.fail(Code::kTornFile, "too short for an archive: " + std::to_string(size) + " bytes",
                 0);
  }
  for (const std::uint64_t searched : {std::min(size, kWindowBytes),
                                       std::min(size, kEndSearchBytes)}) {
    const ByteSpan tail = fetch({size - searched, searched});
    for (std::size_t at = tail.size() - zip::kEndBytes + 1; at-- > 0;) {
      if (u32(tail, at) != zip::kEndSignature) continue;
      if (u16(tail, at + 20) <= tail.size() - at - zip::kEndBytes) return size - searched + at;
    }
  }
  source_.fail(Code::kTornFile,
               "no end record of an archive in the item's last bytes; it is cut or overwritten",
               size);
}

Archive::End Archive::read_end() {
  if (item_kind_of(fetch({0, kItemKindBytes})) == ItemKind::kLegacy) {
    source_.fail(Code::kUnsupported,
                 "written by torch.save before 1.6; load and save it again with a newer torch", 0);
  }
  const std::uint64_t at = find_end_record();
  const ByteSpan record = fetch({at, zip::kEndBytes});
  if (u16(record, 4) != 0 || u16(record, 6) != 0) {
    source_.fail(Code::kUnsupported, "an archive that spans several disks", at);
  }
  End end;
  end.records = u16(record, 10);
  end.directory = {u32(record, 16), u32(record, 12)};
  const bool same_count = u16(record, 8) == u16(record, 10);
  std::uint64_t directory_limit = at;
  if (at >= zip::kWideLocatorBytes) {
    const ByteSpan locator = fetch({at - zip::kWideLocatorBytes, zip::kWideLocatorBytes});
    if (u32(locator, 0) == zip::kWideLocatorSignature) {
      const std::uint64_t wide_at = u64(locator, 8);
      const End wide = read_wide_end(wide_at, at - zip::kWideLocatorBytes);
      if (!agrees(end.records, 0xffff, wide.records) ||
          !agrees(end.directory.size, zip::kSaturated32, wide.directory.size) ||
          !agrees(end.directory.offset, zip::kSaturated32, wide.directory.offset)) {
        source_.fail(Code::kTornFile, "the archive's two end records disagree", wide_at);
      }
      end = wide;
      directory_limit = wide_at;
    }
  }
  if (!same_count) source_.fail(Code::kTornFile, "the end record counts records twice", at);
  if (!end.directory.fits(directory_limit)) {
    source_.fail(Code::kExtentMismatch, "the archive's directory is not where its end record says",
                 at);
  }
  return end;
}

}  // namespace reprise
