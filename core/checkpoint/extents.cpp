#include "core/checkpoint/extents.hpp"

#include <algorithm>

#include "core/base/print.hpp"
#include "core/checkpoint/checkpoint.hpp"

namespace reprise {

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

void require_apart(const Checkpoint& checkpoint) {
  checkpoint.require_sound();
  // Tensors of a file of torch.save may share memory; the reader of the file bounds what that
  // costs.
  if (is_of_torch_save(checkpoint.metadata().form)) return;
  const auto items = items_by_place(checkpoint.catalog());
  for (auto begin = items.begin(); begin != items.end() && begin->file != kNoFile;) {
    const auto end = std::find_if(
        begin, items.end(), [&begin](const StoredItem& item) { return item.file != begin->file; });
    if (const auto overlap = find_overlap({begin, end})) {
      throw Error(Code::kExtentMismatch, words_of(*overlap),
                  {.key = *overlap->item.key,
                   .file = checkpoint.display(overlap->item.file),
                   .offset = overlap->item.range.offset});
    }
    begin = end;
  }
}

}  // namespace reprise
