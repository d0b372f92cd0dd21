#include "core/verify/verify_catalog.hpp"

#include <algorithm>
#include <map>

#include "core/base/print.hpp"
#include "core/checkpoint/extents.hpp"
#include "core/plan/cover.hpp"

namespace reprise {
namespace {

std::string and_others(std::size_t others) {
  return others == 0 ? "" : "; and " + with_commas(others) + " more items of this file";
}

/// Sets the finding's file and offset to those of a chunk that overlaps the defective region. If
/// several chunks overlap it, uses the last chunk, because the first may be correct. Does nothing
/// for a gap, because no chunk overlaps a gap.
void blame_chunk(const StoredTensor& tensor, const CoverDefect& defect,
                 std::span<const StoredFile> files, Finding& finding) {
  if (defect.code == Code::kCoverageGap) return;
  for (const auto& chunk : tensor.chunks) {
    if (chunk.file >= files.size()) continue;
    for (const auto& piece : pieces_of(tensor, chunk)) {
      if (piece.box.ndim() != defect.where.ndim() || !intersect(piece.box, defect.where)) continue;
      finding.file = files[chunk.file].display;
      finding.offset = chunk.range.offset;
    }
  }
}

/// An overlap does not exclude a gap. Reports elements that are in no box, or that they were not
/// looked for, which is if the boxes leave very many pieces.
void look_for_gap(const StoredTensor& tensor, const std::vector<Box>& boxes, Findings& findings) {
  constexpr std::uint64_t kStepsMax = std::uint64_t{1} << 22U;
  const Dims shape = logical_shape(tensor);
  const auto add = [&](const std::string& message) {
    findings.push_back({Severity::kError, Code::kCoverageGap, message, tensor.key});
  };
  std::vector<Box> uncovered = {Box::whole(shape)};
  std::uint64_t steps = 0;
  for (const Box& box : boxes) {
    if (box.empty()) continue;
    std::vector<Box> rest;
    for (const Box& piece : uncovered) {
      const auto hole = intersect(piece, box);
      if (!hole) {
        rest.push_back(piece);
        continue;
      }
      for (const Box& part : subtract(piece, *hole)) rest.push_back(part);
    }
    uncovered = std::move(rest);
    if (uncovered.empty()) return;
    steps += uncovered.size();
    if (steps > kStepsMax) {
      return add("it was not checked whether elements lie outside of all " +
                 with_commas(boxes.size()) + " boxes: the boxes overlap, and there are too many");
    }
  }
  add("elements " + to_string(uncovered.front()) + " of shape " + to_string(shape) +
      " are in none of the " + std::to_string(boxes.size()) + " boxes");
}

void check_tensor(const StoredTensor& tensor, std::span<const StoredFile> files,
                  Findings& findings) {
  try {
    std::vector<Box> boxes;
    for (const auto& chunk : tensor.chunks) {
      for (const auto& piece : pieces_of(tensor, chunk)) boxes.push_back(piece.box);
    }
    if (const auto defect = prove_cover(logical_shape(tensor), boxes)) {
      findings.push_back({Severity::kError, defect->code, defect->message, tensor.key});
      blame_chunk(tensor, *defect, files, findings.back());
      if (defect->code == Code::kChunkOverlap) look_for_gap(tensor, boxes, findings);
    }
  } catch (const Error& error) {
    findings.push_back(finding_from(error.within({.key = tensor.key})));
  }
}

/// Reports items without storage. Adds one finding per tensor or object, however many chunks are
/// affected.
void check_has_storage(const Catalog& catalog, Findings& findings) {
  const auto add = [&findings](const std::string& key, std::size_t chunks) {
    const std::string what = chunks > 1 ? with_commas(chunks) + " of its chunks" : "it";
    findings.push_back(
        {Severity::kError, Code::kCoverageGap,
         "the metadata lists " + what + " but names no bytes for " + (chunks > 1 ? "them" : "it"),
         key});
  };
  for (const auto& tensor : catalog.tensors) {
    const auto without =
        std::count_if(tensor.chunks.begin(), tensor.chunks.end(),
                      [](const StoredChunk& chunk) { return chunk.file == kNoFile; });
    if (without != 0) add(tensor.key, static_cast<std::size_t>(without));
  }
  for (const auto& object : catalog.objects) {
    if (object.file == kNoFile) add(object.key, 1);
  }
}

void check_missing_file(std::span<const StoredItem> items, const StoredFile& file,
                        Findings& findings) {
  findings.push_back({Severity::kError, Code::kNotFound,
                      "the file is missing, but according to the metadata it contains " +
                          with_commas(items.size()) + " items, the first of which is " +
                          *items.front().key,
                      *items.front().key, file.display});
}

void check_extents(std::span<const StoredItem> items, const StoredFile& file, Findings& findings) {
  const StoredItem* first = nullptr;
  std::size_t count = 0;
  for (const StoredItem& item : items) {
    if (item.range.fits(*file.size)) continue;
    if (first == nullptr) first = &item;
    ++count;
  }
  if (first == nullptr) return;
  findings.push_back({Severity::kError, Code::kTornFile,
                      "the metadata claims " + with_commas(first->range.size) +
                          " bytes from here, but the file ends at " + with_commas(*file.size) +
                          and_others(count - 1),
                      *first->key, file.display, first->range.offset});
}

void check_overlaps(std::span<const StoredItem> items, const StoredFile& file, Findings& findings) {
  const auto overlap = find_overlap(items, *file.size);
  if (!overlap) return;
  findings.push_back({Severity::kError, Code::kExtentMismatch, words_of(*overlap),
                      *overlap->item.key, file.display, overlap->item.range.offset});
}

/// Warns of bytes after the last item: a save writes none. All items must lie within the file.
void check_end(std::span<const StoredItem> items, const StoredFile& file, Findings& findings) {
  std::uint64_t end = 0;
  for (const StoredItem& item : items) end = std::max(end, item.range.offset + item.range.size);
  if (end == *file.size) return;
  findings.push_back({Severity::kWarning, Code::kExtentMismatch,
                      "the last item ends here, and " + counted(*file.size - end, "byte") +
                          " follow that the metadata does not name",
                      "", file.display, end});
}

/// True if the checksums of the two chunks show that their elements differ.
bool surely_differ(const StoredChunk& a, const StoredChunk& b) {
  if (!a.view || !b.view || !a.view->record || !b.view->record) return false;
  const auto alone = [](const StoredChunk& chunk) {
    return chunk.view->record->range == chunk.range && chunk.view->record->crc != 0;
  };
  return alone(a) && alone(b) && a.range.size == b.range.size &&
         a.view->strides == b.view->strides && a.view->byteswap == b.view->byteswap &&
         !a.view->flips.any() && !b.view->flips.any() && a.view->record->crc != b.view->record->crc;
}

/// Returns a box in which the two copies of a tensor surely differ. `parts` is true if only boxes
/// that are no whole tensor count.
const Box* differing_box(const StoredTensor& a, const StoredTensor& b, bool parts) {
  std::map<Box, const StoredChunk*> of_a;
  for (const StoredChunk& chunk : a.chunks) of_a.emplace(chunk.box, &chunk);
  for (const StoredChunk& chunk : b.chunks) {
    const auto other = of_a.find(chunk.box);
    if (other == of_a.end() || (parts && chunk.box == Box::whole(b.shape))) continue;
    if (surely_differ(*other->second, chunk)) return &chunk.box;
  }
  return nullptr;
}

}  // namespace

Findings check_replicas(const Catalog& catalog,
                        const std::function<bool(std::string_view)>& replicated) {
  Findings findings;
  std::map<std::string_view, const StoredTensor*> first;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (!tensor.known_by.own) continue;
    const std::string_view name = name_of(tensor);
    const auto [known, is_new] = first.emplace(name, &tensor);
    if (is_new) continue;
    const StoredTensor& other = *known->second;
    if (other.dtype != tensor.dtype || !(other.shape == tensor.shape)) continue;
    const Box* box = differing_box(other, tensor, !replicated(name));
    if (box == nullptr) continue;
    findings.push_back({Severity::kWarning, Code::kCommonStateDiverges,
                        "replicas differ in " + to_string(*box) + ", though ranks say that they " +
                            "have the same part: the copy of rank " +
                            std::to_string(other.known_by.ranks.front()) + " and that of rank " +
                            std::to_string(tensor.known_by.ranks.front()),
                        std::string(name)});
  }
  return findings;
}

Findings check_cover(const Catalog& catalog, std::span<const StoredFile> files) {
  Findings findings;
  for (const auto& tensor : catalog.tensors) check_tensor(tensor, files, findings);
  check_has_storage(catalog, findings);
  return findings;
}

Findings check_storage(const Catalog& catalog, std::span<const StoredFile> files) {
  Findings findings;
  const auto items = items_by_place(catalog);
  for (auto begin = items.begin(); begin != items.end() && begin->file != kNoFile;) {
    const auto end = std::find_if(
        begin, items.end(), [&begin](const StoredItem& item) { return item.file != begin->file; });
    const std::span<const StoredItem> of_file(begin, end);
    const StoredFile& file = files[begin->file];
    if (!file.size) {
      check_missing_file(of_file, file, findings);
    } else {
      const std::size_t before = findings.size();
      check_extents(of_file, file, findings);
      check_overlaps(of_file, file, findings);
      if (findings.size() == before) check_end(of_file, file, findings);
    }
    begin = end;
  }
  return findings;
}

bool is_readable(FileIndex file, ByteRange range, std::span<const StoredFile> files) {
  return file != kNoFile && files[file].size && range.fits(*files[file].size);
}

}  // namespace reprise
