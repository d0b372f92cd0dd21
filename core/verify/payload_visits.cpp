#include "core/verify/payload_visits.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace reprise {
namespace {

/// A run ends once it has so many bytes; more would leave threads without work at the end.
constexpr std::uint64_t kRunBytes = std::uint64_t{16} << 20U;
/// What an item costs besides its bytes, in bytes that could be read meanwhile.
constexpr std::uint64_t kVisitBytes = std::uint64_t{16} << 10U;

/// Returns the readable items in the order of files and offsets.
std::vector<Visit> readable_items(const Catalog& catalog, std::span<const StoredFile> files) {
  std::vector<Visit> visits;
  const auto add = [&visits, files](const Visit& visit) {
    if (is_readable(visit.file, visit.range, files)) visits.push_back(visit);
  };
  std::set<const SharedRecord*> seen;
  for (const auto& tensor : catalog.tensors) {
    for (const auto& chunk : tensor.chunks) {
      // What several tensors share is read once, as the record that it is.
      if (chunk.view && !seen.insert(chunk.view->record.get()).second) continue;
      const ByteRange range = chunk.view ? chunk.view->record->range : chunk.range;
      add({chunk.file, range, &tensor, &chunk, nullptr});
    }
  }
  for (const auto& object : catalog.objects) {
    add({object.file, object.range, nullptr, nullptr, &object});
  }
  std::stable_sort(visits.begin(), visits.end(), [](const Visit& a, const Visit& b) {
    return std::pair(a.file, a.range.offset) < std::pair(b.file, b.range.offset);
  });
  return visits;
}

/// Limits the number of bytes of a file that are read again because items overlap. The limit is the
/// size of the file. It is needed because even a small metadata file can list very many overlapping
/// items. Overlaps are reported elsewhere.
class Rereads {
 public:
  /// True if the item may be read. Must be called in the order of readable_items().
  bool allowed(const Visit& visit, std::span<const StoredFile> files) {
    if (visit.file != file_) {
      file_ = visit.file;
      reached_ = 0;
      spare_ = files[file_].size.value_or(0);
    }
    if (visit.range.offset < reached_) {
      if (visit.range.size > spare_) return false;
      spare_ -= visit.range.size;
    }
    reached_ = std::max(reached_, visit.range.offset + visit.range.size);
    return true;
  }

 private:
  FileIndex file_ = kNoFile;
  std::uint64_t reached_ = 0;
  std::uint64_t spare_ = 0;
};

std::vector<std::span<const Visit>> runs_of(std::span<const Visit> visits) {
  std::vector<std::span<const Visit>> runs;
  std::size_t begin = 0;
  std::uint64_t cost = 0;
  for (std::size_t i = 0; i < visits.size(); ++i) {
    cost += visits[i].range.size + kVisitBytes;
    const bool last = i + 1 == visits.size() || visits[i + 1].file != visits[i].file;
    if (!last && cost < kRunBytes) continue;
    runs.push_back(visits.subspan(begin, i + 1 - begin));
    begin = i + 1;
    cost = 0;
  }
  return runs;
}

}  // namespace

PayloadVisits payload_visits(const Catalog& catalog, std::span<const StoredFile> files) {
  PayloadVisits found{readable_items(catalog, files), {}};
  Rereads rereads;
  found.left_out = std::erase_if(
      found.visits, [&](const Visit& visit) { return !rereads.allowed(visit, files); });
  for (const Visit& visit : found.visits) found.bytes += visit.range.size;
  found.runs = runs_of(found.visits);
  return found;
}

}  // namespace reprise
