#include "core/engine/checksum_tally.hpp"

#include <algorithm>
#include <array>

#include "core/base/print.hpp"
#include "core/format/archive.hpp"

namespace reprise {
namespace {

constexpr std::size_t kKept = 64;
constexpr std::string_view kElements = "data/";  // begins the names of records of elements

/// The stream of torch before 1.6, which has no records.
bool is_legacy(ItemSource& item) {
  std::array<std::byte, kItemKindBytes> first{};
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(item.size(), first.size()));
  item.read_at(0, MutableByteSpan(first.data(), size));
  return item_kind_of(ByteSpan(first.data(), size)) == ItemKind::kLegacy;
}

}  // namespace

void ChecksumTally::add(ItemSource& item, const std::string& key) {
  if (is_legacy(item)) return;
  Archive archive(item);
  for (const Record& record : archive.records()) {
    if (record.size == 0) continue;
    add(record, archive.checksum_matches(record), [&] {
      ErrorPlace place = item.place_at(archive.content_range(record).offset);
      place.key = key;
      return place;
    });
  }
}

void ChecksumTally::add(const Record& record, bool matches,
                        const std::function<ErrorPlace()>& place_of) {
  const auto count = [&record, matches](Count& of) {
    ++of.records;
    if (record.crc == 0) ++of.unset;
    if (!matches) ++of.mismatches;
  };
  count(counts_.all);
  if (record.name.starts_with(kElements)) count(counts_.elements);
  if (matches) return;
  if (kept_.size() == kKept) return;
  const ErrorPlace place = place_of();
  kept_.push_back({Severity::kError, Code::kChecksum,
                   "the content of record " + record.name + " (" + human_bytes(record.size) +
                       ") does not have its recorded checksum: bytes changed after the save",
                   place.key, place.file, place.offset});
}

bool ChecksumTally::Counts::may_be_switched_off() const {
  if (all.unset == all.records) return true;
  return elements.unset == elements.records && elements.mismatches == all.mismatches;
}

bool ChecksumTally::Counts::switched_off() const {
  constexpr std::uint64_t kRecordsMin = 2;
  return all.records >= kRecordsMin && all.mismatches != 0 && may_be_switched_off();
}

void ChecksumTally::require_matches() const {
  if (kept_.empty()) return;
  const Finding& first = kept_.front();
  throw Error(first.code, first.message,
              {.key = first.key, .file = first.file, .offset = first.offset});
}

void ChecksumTally::require_no_damage() const {
  if (!counts_.may_be_switched_off()) require_matches();
}

Findings ChecksumTally::findings() const {
  if (switched_off()) {
    const bool every = counts_.all.unset == counts_.all.records;
    const Count& off = every ? counts_.all : counts_.elements;
    return {
        {Severity::kNote, Code::kChecksum,
         "all of " + with_commas(off.records) + (every ? " records" : " records of elements") +
             " have 0 for a checksum: the writer had them switched off, so flipped bits cannot be "
             "seen"}};
  }
  Findings all = kept_;
  if (mismatches() > kept_.size()) {
    all.push_back({Severity::kError, Code::kChecksum,
                   with_commas(mismatches() - kept_.size()) + " more records are wrong"});
  }
  return all;
}

}  // namespace reprise
