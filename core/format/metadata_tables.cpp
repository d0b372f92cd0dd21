#include "core/format/metadata_tables.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.hpp"

namespace reprise {
namespace {

constexpr std::size_t kNotesOfAKindMax = 8;

/// Adds chunks of `more` that no earlier table has; a chunk of several tables keeps the first
/// storage that is named. All are sorted once: there may be a table per rank.
void unite_chunks(StoredTensor& tensor, std::span<const StoredTensor> more) {
  std::vector<StoredChunk> all = std::move(tensor.chunks);
  std::vector<std::size_t> table_of(all.size(), 0);
  for (const StoredTensor& next : more) {
    all.insert(all.end(), next.chunks.begin(), next.chunks.end());
    table_of.resize(all.size(), table_of.empty() ? 1 : table_of.back() + 1);
  }
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].box < all[b].box; });
  std::vector<bool> kept(all.size());
  for (std::size_t i = 0, first = 0; i < order.size(); ++i) {
    if (all[order[i]].box != all[order[first]].box) first = i;
    StoredChunk& chunk = all[order[first]];
    kept[order[i]] = table_of[order[i]] == table_of[order[first]];  // twice in one: verify's matter
    if (chunk.file == kNoFile) chunk = all[order[i]];
  }
  tensor.chunks.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (kept[i]) tensor.chunks.push_back(all[i]);
  }
}

void unite(StoredTensor& tensor, std::span<const StoredTensor> more) {
  for (const StoredTensor& next : more) {
    if (tensor.shape != next.shape || tensor.original_shape != next.original_shape) {
      throw Error(Code::kShapeDrift,
                  "the metadata of different ranks disagree on the shape: " +
                      to_string(logical_shape(tensor)) + " and " + to_string(logical_shape(next)),
                  {.key = tensor.key});
    }
    if (tensor.dtype != next.dtype) {
      throw Error(Code::kDtypeDrift,
                  "the metadata of different ranks disagree on the element type: " +
                      std::string(name_of(tensor.dtype)) + " and " +
                      std::string(name_of(next.dtype)),
                  {.key = tensor.key});
    }
  }
  unite_chunks(tensor, more);
}

/// Sorts by key; of items of one key the first is kept, once it is united with the later ones.
template <class Item, class Unite>
std::vector<Item> sorted_by_key(std::vector<Item> items, Unite&& unite_with) {
  const auto by_key = [](const Item& a, const Item& b) { return a.key < b.key; };
  const auto not_before = [](const Item& a, const Item& b) { return !(a.key < b.key); };
  if (std::adjacent_find(items.begin(), items.end(), not_before) == items.end()) return items;
  std::stable_sort(items.begin(), items.end(), by_key);
  std::vector<Item> kept;
  for (auto first = items.begin(); first != items.end();) {
    const auto end = std::find_if(first + 1, items.end(),
                                  [&](const Item& item) { return item.key != first->key; });
    if (end - first > 1) unite_with(*first, std::span<Item>(first + 1, end));
    kept.push_back(std::move(*first));
    first = end;
  }
  return kept;
}

template <class Item>
void move_to(std::vector<Item>& target, std::vector<Item>& source) {
  if (target.empty()) {
    target = std::move(source);
  } else {
    std::move(source.begin(), source.end(), std::back_inserter(target));
  }
}

}  // namespace

FileIndex FileNames::add(std::string_view name) {
  const auto [found, is_new] =
      index_.emplace(std::string(name), static_cast<FileIndex>(names_.size()));
  if (is_new) names_.emplace_back(name);
  return found->second;
}

void Notes::add(const char* kind, std::string text) {
  auto group = std::find_if(groups_.begin(), groups_.end(),
                            [&](const Group& g) { return std::string_view(g.kind) == kind; });
  if (group == groups_.end()) group = groups_.insert(group, {kind, {}, 0});
  ++group->count;
  if (group->first.size() < kNotesOfAKindMax) group->first.push_back(std::move(text));
}

std::vector<std::string> Notes::take() {
  std::vector<std::string> all;
  for (Group& group : groups_) {
    const std::size_t more = group.count - group.first.size();
    std::move(group.first.begin(), group.first.end(), std::back_inserter(all));
    if (more > 0) all.push_back("and " + std::to_string(more) + " more: " + group.kind);
  }
  return all;
}

Metadata merge_tables(std::vector<MetadataTables> tables, FileNames names, Notes notes) {
  Metadata merged;
  for (MetadataTables& table : tables) {
    move_to(merged.catalog.tensors, table.tensors);
    move_to(merged.catalog.objects, table.objects);
    move_to(merged.planner_data, table.planner_data);
    if (merged.checkpoint_id.empty()) merged.checkpoint_id = table.checkpoint_id;
    if (merged.save_id.empty()) merged.save_id = table.save_id;
    if (merged.version.empty()) merged.version = table.version;
    merged.has_local_plans = merged.has_local_plans || table.has_local_plans;
  }
  merged.catalog.tensors =
      sorted_by_key(std::move(merged.catalog.tensors),
                    [](StoredTensor& first, std::span<StoredTensor> more) { unite(first, more); });
  merged.catalog.objects = sorted_by_key(
      // Each rank describes its own: if the first names no bytes, those of another are no remedy.
      std::move(merged.catalog.objects), [&](const StoredObject& first, std::span<StoredObject>) {
        notes.add("objects that several ranks' metadata have",
                  "object " + first.key + " is in several ranks' metadata; the first is used");
      });
  if (tables.size() > 1) {
    merged.planner_data = sorted_by_key(std::move(merged.planner_data),
                                        [](PlannerEntry&, std::span<PlannerEntry>) {});
  }
  for (const StoredTensor& tensor : merged.catalog.tensors) {
    if (merged.catalog.object(tensor.key) != nullptr) {
      throw Error(Code::kTornFile, "the key is both a tensor and an object", {.key = tensor.key});
    }
  }
  merged.catalog.files = names.take();
  merged.notes = notes.take();
  return merged;
}

Metadata read_metadata(std::span<const ByteSpan> files, std::span<const std::string> names) {
  CHECK(files.size() == names.size(), files.size(), names.size());
  FileNames file_names;
  Notes notes;
  std::vector<MetadataTables> tables;
  for (std::size_t i = 0; i < files.size(); ++i) {
    tables.push_back(read_tables(files[i], names[i], file_names, notes));
  }
  try {
    return merge_tables(std::move(tables), std::move(file_names), std::move(notes));
  } catch (const Error& error) {
    const bool one = names.size() == 1;
    throw error.within({.file = one ? names[0] : names.front() + " to " + names.back()});
  }
}

}  // namespace reprise
