#include "core/verify/verify_mixture.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/print.hpp"
#include "core/checkpoint/file_digest.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kSlack = 10 * kSecond;  // clocks of two machines may differ by this much
constexpr std::int64_t kSign = kSecond / 2;    // a gap above this is worth a note
// Lowest copying speed that is assumed, in nanoseconds per byte (10 MB/s).
constexpr std::int64_t kSlowestCopy = 100;
// Number of bytes at the end of a file that are compared first. They include the checksums of the
// last items.
constexpr std::uint64_t kTailBytes = 4096;

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Returns the time that is needed to copy the file at the lowest speed that is assumed.
std::int64_t copy_time(const StoredFile& file) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50U;
  return static_cast<std::int64_t>(std::min(file.size.value_or(0), kMost)) * kSlowestCopy;
}

Finding mixture(std::span<const StoredFile* const> newer, std::size_t files, std::int64_t gap,
                Severity severity) {
  std::vector<std::string> names;
  for (const StoredFile* file : newer) names.push_back(name_in(file->display));
  std::sort(names.begin(), names.end());
  const auto tenths = static_cast<std::uint64_t>(gap / (kSecond / 10));
  return {severity, kMixtureCode,
          with_commas(newer.size()) + " of " + with_commas(files) + " payload files were written " +
              with_commas(tenths / 10) + "." + std::to_string(tenths % 10) +
              " s or more after the metadata, the others before it: " + join_first(names) +
              "; they may be from another save, which their content can't show"};
}

struct Tail {
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  friend auto operator<=>(const Tail&, const Tail&) = default;
};

Tail tail_of(ReadFile& file) {
  const std::uint64_t size = file.size();
  Bytes tail(std::min(size, kTailBytes));
  file.read_at(size - tail.size(), tail);
  return {size, crc32_of(tail)};
}

/// Returns the files that have several items. Two such files are unlikely to be equal by chance.
std::vector<FileIndex> files_of_several(const Catalog& catalog) {
  std::vector<std::size_t> items(catalog.files.size());
  const auto count = [&items](FileIndex file) {
    if (file < items.size()) ++items[file];
  };
  for (const auto& tensor : catalog.tensors) {
    for (const auto& chunk : tensor.chunks) count(chunk.file);
  }
  for (const auto& object : catalog.objects) count(object.file);
  std::vector<FileIndex> several;
  for (FileIndex file = 0; file < items.size(); ++file) {
    if (items[file] > 1) several.push_back(file);
  }
  return several;
}

}  // namespace

Findings check_times(std::span<const StoredFile> files, std::int64_t metadata_ns) {
  std::vector<const StoredFile*> newer;
  std::int64_t oldest = metadata_ns;
  std::size_t count = 0;
  for (const StoredFile& file : files) {
    if (!file.size.value_or(0) || !file.modified_ns) continue;
    ++count;
    if (*file.modified_ns > metadata_ns) newer.push_back(&file);
    oldest = std::min(oldest, *file.modified_ns);
  }
  if (newer.empty() || newer.size() == count) return {};
  const auto [first, last] = std::minmax_element(
      newer.begin(), newer.end(),
      [](const StoredFile* a, const StoredFile* b) { return *a->modified_ns < *b->modified_ns; });
  const std::int64_t gap = *(*first)->modified_ns - metadata_ns;
  const std::int64_t spread =
      std::max(metadata_ns - oldest, *(*last)->modified_ns - *(*first)->modified_ns);
  const std::int64_t usual = spread + copy_time(**first);
  if (gap <= usual + kSign) return {};
  return {mixture(newer, count, gap, gap > usual + kSlack ? Severity::kWarning : Severity::kNote)};
}

Findings check_times(Checkpoint& checkpoint, std::span<const StoredFile> files) {
  Store& store = checkpoint.store();
  const std::string& directory = checkpoint.location().directory;
  std::optional<std::int64_t> newest;
  for (const auto& name : metadata_names(store, directory)) {
    const auto entry = store.stat(join_path(directory, name));
    if (!entry || !entry->modified_ns) return {};
    newest = std::max(newest.value_or(*entry->modified_ns), *entry->modified_ns);
  }
  if (!newest) return {};
  Findings findings = check_times(files, *newest);
  for (auto& finding : findings) finding.file = store.display(directory);
  return findings;
}

Findings check_identical_files(Checkpoint& checkpoint, std::span<const StoredFile> files) {
  std::map<Tail, std::vector<FileIndex>> by_tail;
  for (const FileIndex file : files_of_several(checkpoint.catalog())) {
    if (files[file].size.value_or(0) == 0) continue;
    by_tail[tail_of(checkpoint.file(file))].push_back(file);
  }
  std::vector<std::string> pairs;
  for (const auto& [tail, alike] : by_tail) {
    if (alike.size() == 1) continue;
    std::map<Sha256Digest, FileIndex> seen;
    for (const FileIndex file : alike) {
      const auto digest = digest_of_file(checkpoint.store(), checkpoint.path_of(file));
      const auto [first, is_new] = seen.emplace(digest, file);
      if (is_new) continue;
      const auto& names = checkpoint.catalog().files;
      pairs.push_back(names[first->second] + " = " + names[file]);
    }
  }
  if (pairs.empty()) return {};
  return {
      {Severity::kNote, kMixtureCode,
       "payload files of different items have the same bytes; one may have been copied over the "
       "other: " +
           join_first(pairs),
       "", checkpoint.store().display(checkpoint.location().directory)}};
}

}  // namespace reprise
