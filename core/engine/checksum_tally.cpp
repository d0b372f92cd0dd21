#include "core/engine/checksum_tally.hpp"

#include <algorithm>
#include <array>

#include "core/base/print.hpp"
#include "core/format/archive.hpp"

namespace reprise {
namespace {

constexpr std::size_t kKept = 64;

bool is_archive(ItemSource& item) {
  std::array<std::byte, kItemKindBytes> first{};
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(item.size(), first.size()));
  item.read_at(0, MutableByteSpan(first.data(), size));
  return item_kind_of(ByteSpan(first.data(), size)) == ItemKind::kArchive;
}

}  // namespace

void ChecksumTally::add(ItemSource& item, const std::string& key) {
  if (!is_archive(item)) return;
  Archive archive(item);
  for (const Record& record : archive.records()) {
    if (record.size == 0) continue;
    ++records_;
    if (archive.checksum_matches(record)) continue;
    ++mismatches_;
    if (kept_.size() == kKept) continue;
    const ErrorPlace place = item.place_at(archive.content_range(record).offset);
    kept_.push_back({Severity::kError, Code::kChecksum,
                     "the content of record " + record.name + " (" + human_bytes(record.size) +
                         ") does not have its recorded checksum: bytes changed after the save",
                     key, place.file, place.offset});
  }
}

Findings ChecksumTally::findings() const {
  if (switched_off()) {
    return {{Severity::kNote, Code::kChecksum,
             "none of " + with_commas(records_) +
                 " records has its checksum: the writer had them switched off, so flipped bits "
                 "cannot be seen"}};
  }
  Findings all = kept_;
  if (mismatches_ > kept_.size()) {
    all.push_back({Severity::kError, Code::kChecksum,
                   with_commas(mismatches_ - kept_.size()) + " more records are wrong"});
  }
  return all;
}

}  // namespace reprise
