#include "core/checkpoint/extents.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/print.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/format/zip/archive.hpp"

namespace reprise {
namespace {

bool begins_safetensors(const Checkpoint& checkpoint, FileIndex file, std::uint64_t offset) try {
  const auto open = checkpoint.store().open(checkpoint.path_of(file));
  if (open->size() < kItemKindBytes || offset > open->size() - kItemKindBytes) return false;
  std::array<std::byte, kItemKindBytes> first = {};
  open->read_at(offset, first);
  return item_kind_of(first) == ItemKind::kSafetensors;
} catch (const Error&) {
  return false;
}

}  // namespace

std::vector<StoredItem> items_by_place(const Catalog& catalog) {
  std::vector<StoredItem> items;
  for (const auto& tensor : catalog.tensors) {
    for (const auto& chunk : tensor.chunks) items.push_back({chunk.file, chunk.range, &tensor.key});
  }
  for (const auto& object : catalog.objects) {
    items.push_back({object.file, object.range, &object.key});
  }
  std::stable_sort(items.begin(), items.end(), [](const StoredItem& a, const StoredItem& b) {
    return a.file != b.file ? a.file < b.file : a.range.offset < b.range.offset;
  });
  return items;
}

std::optional<Overlap> find_overlap(std::span<const StoredItem> items, std::uint64_t file_size) {
  const StoredItem* longest = nullptr;  // of the items so far, the one that ends last
  const auto end_of = [](const StoredItem& item) { return item.range.offset + item.range.size; };
  std::optional<Overlap> found;
  for (const StoredItem& item : items) {
    if (item.range.size == 0 || !item.range.fits(file_size)) continue;
    if (longest != nullptr && item.range.offset < end_of(*longest)) {
      if (!found) found = Overlap{item, *longest};
      ++found->count;
    }
    if (longest == nullptr || end_of(item) > end_of(*longest)) longest = &item;
  }
  return found;
}

std::string words_of(const Overlap& overlap) {
  const std::size_t others = overlap.count - 1;
  return "its bytes overlap those of " + *overlap.met.key + ", which begin at " +
         with_commas(overlap.met.range.offset) +
         (others == 0 ? "" : "; and " + with_commas(others) + " more items of this file");
}

std::optional<Error> safetensors_in(const Checkpoint& checkpoint) {
  std::set<FileIndex> seen;
  for (const StoredTensor& tensor : checkpoint.catalog().tensors) {
    for (const StoredChunk& chunk : tensor.chunks) {
      if (chunk.file == kNoFile || !seen.insert(chunk.file).second) continue;
      const std::uint64_t offset = chunk.range.offset;
      if (!begins_safetensors(checkpoint, chunk.file, offset)) continue;
      return Error(
          Code::kUnsupported,
          "the tensors were saved as safetensors (SerializationFormat.SAFETENSORS), and torch "
          "itself cannot load such a checkpoint: safetensors.torch.load(open(FILE, 'rb').read()[" +
              std::to_string(offset) +
              ":]) gives this file's tensors, which are one rank's part; save without it",
          {.key = tensor.key, .file = checkpoint.display(chunk.file), .offset = offset});
    }
  }
  return std::nullopt;
}

void require_apart(const Checkpoint& checkpoint) {
  const auto items = items_by_place(checkpoint.catalog());
  for (auto begin = items.begin(); begin != items.end() && begin->file != kNoFile;) {
    const auto end = std::find_if(
        begin, items.end(), [&begin](const StoredItem& item) { return item.file != begin->file; });
    if (const auto overlap = find_overlap({begin, end})) {
      if (const auto error = safetensors_in(checkpoint)) throw Error(*error);
      throw Error(Code::kExtentMismatch, words_of(*overlap),
                  {.key = *overlap->item.key,
                   .file = checkpoint.display(overlap->item.file),
                   .offset = overlap->item.range.offset});
    }
    begin = end;
  }
}

}  // namespace reprise
