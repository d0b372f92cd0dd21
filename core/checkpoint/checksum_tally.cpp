#include "core/checkpoint/checksum_tally.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

#include "core/base/print.hpp"
#include "core/format/zip/archive.hpp"

namespace reprise {
namespace {

constexpr std::size_t kKept = 64;  // mismatches kept per file: the first by offset
/// Most mismatches kept in all, unless there are more files: of each, the first is kept.
constexpr std::size_t kKeptInAll = 1024;
constexpr std::size_t kFilesNamed = 6;
constexpr std::string_view kElements = "data/";  // name prefix of element records

/// Joins the names of the first few files and counts the others: "a, b and 3 more files".
std::string some_of(const std::vector<std::string>& files) {
  const std::size_t named = std::min(files.size(), kFilesNamed);
  std::string text = join(std::span(files).first(named), ", ");
  if (files.size() > named) text += " and " + std::to_string(files.size() - named) + " more files";
  return text;
}

/// True for the stream format of torch before 1.6, which has no records.
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
  add(archive, key);
}

void ChecksumTally::add(Archive& archive, const std::string& key) {
  const ItemSource& item = archive.source();
  const std::string file = item.place_at(0).file;
  for (const Record& record : archive.records()) {
    if (record.size == 0) continue;
    add(file, record, archive.checksum_matches(record), [&] {
      ErrorPlace place = item.place_at(archive.content_range(record).offset);
      place.key = key;
      return place;
    });
  }
}

void ChecksumTally::add(const std::string& file, const Record& record, bool matches,
                        const std::function<ErrorPlace()>& place_of) {
  const auto count = [&record, matches](Count& of) {
    ++of.records;
    if (record.crc == 0) ++of.unset;
    if (!matches) ++of.mismatches;
  };
  OfFile& of_file = files_[file];
  count(of_file.counts.all);
  if (record.name.starts_with(kElements)) count(of_file.counts.elements);
  if (matches) return;
  const ErrorPlace place = place_of();
  keep(file, {Severity::kError, Code::kChecksum,
              "the content of record " + record.name + " (" + human_bytes(record.size) +
                  ") does not have its recorded checksum: bytes changed after the save",
              place.key, place.file, place.offset});
}

/// Keeps what comes first by file, offset and key, whatever comes first in time: once there are too
/// many, the last file with several gives up its last. What was given up stays beyond the limit,
/// since what comes later can only push it further back.
void ChecksumTally::keep(const std::string& file, Finding finding) {
  Findings& kept = files_[file].kept;
  const auto before = [](const Finding& a, const Finding& b) {
    return std::tie(a.offset, a.key, a.message) < std::tie(b.offset, b.key, b.message);
  };
  kept.insert(std::ranges::upper_bound(kept, finding, before), std::move(finding));
  ++kept_;
  if (kept.size() > 1) several_.insert(file);
  const auto give_up_last = [this](const std::string& of) {
    Findings& from = files_.at(of).kept;
    from.pop_back();
    --kept_;
    if (from.size() == 1) several_.erase(several_.find(of));
  };
  if (kept.size() > kKept) give_up_last(file);
  if (kept_ > kKeptInAll && !several_.empty()) give_up_last(*several_.rbegin());
}

void ChecksumTally::add(const ChecksumTally& other) {
  const auto add_count = [](Count& to, const Count& more) {
    to.records += more.records;
    to.mismatches += more.mismatches;
    to.unset += more.unset;
  };
  for (const auto& [file, theirs] : other.files_) {
    OfFile& ours = files_[file];
    add_count(ours.counts.all, theirs.counts.all);
    add_count(ours.counts.elements, theirs.counts.elements);
    for (const Finding& finding : theirs.kept) keep(file, finding);
  }
}

std::map<std::string, ChecksumTally::Counts> ChecksumTally::counts() const {
  std::map<std::string, Counts> all;
  for (const auto& [file, of_file] : files_) all.emplace(file, of_file.counts);
  return all;
}

std::uint64_t ChecksumTally::records() const {
  std::uint64_t sum = 0;
  for (const auto& [file, of_file] : files_) sum += of_file.counts.all.records;
  return sum;
}

std::uint64_t ChecksumTally::mismatches() const {
  std::uint64_t sum = 0;
  for (const auto& [file, of_file] : files_) sum += of_file.counts.all.mismatches;
  return sum;
}

bool ChecksumTally::has_elements_only(const std::string& file) const {
  const auto found = files_.find(file);
  return found != files_.end() &&
         found->second.counts.all.records == found->second.counts.elements.records;
}

bool ChecksumTally::Counts::may_be_switched_off() const {
  if (all.unset == all.records) return true;
  return elements.unset == elements.records && elements.mismatches == all.mismatches;
}

bool ChecksumTally::Counts::switched_off() const {
  constexpr std::uint64_t kRecordsMin = 2;
  return all.records >= kRecordsMin && all.mismatches != 0 && may_be_switched_off();
}

void ChecksumTally::require_matches(const std::function<bool(const std::string& file)>& in) const {
  for (const auto& [file, of_file] : files_) {
    if (of_file.kept.empty() || !in(file)) continue;
    const Finding& first = of_file.kept.front();
    throw Error(first.code, first.message,
                {.key = first.key, .file = first.file, .offset = first.offset});
  }
}

void ChecksumTally::require_no_damage() const {
  if (kept_ == 0) return;
  require_matches(
      [this](const std::string& file) { return !files_.at(file).counts.may_be_switched_off(); });
}

Findings ChecksumTally::findings() const {
  Findings all;
  std::vector<std::string> off;
  std::uint64_t records_off = 0;
  bool every = true;
  std::uint64_t more = 0;
  for (const auto& [file, of_file] : files_) {
    const Counts& counts = of_file.counts;
    if (counts.switched_off()) {
      const bool all_records = counts.all.unset == counts.all.records;
      records_off += (all_records ? counts.all : counts.elements).records;
      every = every && all_records;
      off.push_back(file);
      continue;
    }
    const std::size_t room = kKept - std::min(kKept, all.size());
    const std::size_t told = std::min(room, of_file.kept.size());
    all.insert(all.end(), of_file.kept.begin(),
               of_file.kept.begin() + static_cast<std::ptrdiff_t>(told));
    more += counts.all.mismatches - told;
  }
  if (more > 0) {
    all.push_back(
        {Severity::kError, Code::kChecksum, with_commas(more) + " more records are wrong"});
  }
  if (!off.empty()) {
    const std::string which = off.size() == files_.size() ? "" : " in " + some_of(off);
    all.push_back({Severity::kNote, Code::kChecksum,
                   "all of " + with_commas(records_off) +
                       (every ? " records" : " records of elements") + which +
                       " have 0 as their checksum: the writer had checksums switched off, so "
                       "flipped bits cannot be detected"});
  }
  return all;
}

}  // namespace reprise
