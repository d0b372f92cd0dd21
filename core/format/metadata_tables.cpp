#include "core/format/metadata_tables.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.hpp"

namespace reprise {
namespace {

constexpr std::size_t kNotesOfAKindMax = 8;

/// Adds the chunks of `more` that `tensor` does not have yet; a chunk that both have keeps the
/// first storage.
void unite_chunks(StoredTensor& tensor, StoredTensor&& more) {
  std::vector<std::size_t> order(tensor.chunks.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensor.chunks[a].box < tensor.chunks[b].box;
  });
  for (const StoredChunk& chunk : more.chunks) {
    const auto same =
        std::lower_bound(order.begin(), order.end(), chunk.box,
                         [&](std::size_t i, const Box& box) { return tensor.chunks[i].box < box; });
    if (same == order.end() || tensor.chunks[*same].box != chunk.box) {
      tensor.chunks.push_back(chunk);
    } else if (tensor.chunks[*same].file == kNoFile) {
      tensor.chunks[*same] = chunk;
    }
  }
}

void unite(StoredTensor& tensor, StoredTensor&& more) {
  if (tensor.shape != more.shape || tensor.original_shape != more.original_shape) {
    throw Error(Code::kShapeDrift,
                "the metadata of different ranks disagree on the shape: " +
                    to_string(logical_shape(tensor)) + " and " + to_string(logical_shape(more)),
                {.key = tensor.key});
  }
  if (tensor.dtype != more.dtype) {
    throw Error(Code::kDtypeDrift,
                "the metadata of different ranks disagree on the element type: " +
                    std::string(name_of(tensor.dtype)) + " and " + std::string(name_of(more.dtype)),
                {.key = tensor.key});
  }
  unite_chunks(tensor, std::move(more));
}

/// Sorts by key and drops later items of the same key.
template <class Item, class Unite>
std::vector<Item> sorted_by_key(std::vector<Item> items, Unite&& unite_with) {
  const auto by_key = [](const Item& a, const Item& b) { return a.key < b.key; };
  const auto not_before = [](const Item& a, const Item& b) { return !(a.key < b.key); };
  if (std::adjacent_find(items.begin(), items.end(), not_before) == items.end()) return items;
  std::stable_sort(items.begin(), items.end(), by_key);
  std::vector<Item> kept;
  for (Item& item : items) {
    if (kept.empty() || kept.back().key != item.key) {
      kept.push_back(std::move(item));
    } else {
      unite_with(kept.back(), std::move(item));
    }
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
  merged.catalog.tensors = sorted_by_key(
      std::move(merged.catalog.tensors),
      [](StoredTensor& first, StoredTensor&& more) { unite(first, std::move(more)); });
  merged.catalog.objects = sorted_by_key(
      // Each rank describes its own: if the first names no bytes, those of another are no remedy.
      std::move(merged.catalog.objects), [&](const StoredObject& first, const StoredObject&) {
        notes.add("objects that several ranks' metadata have",
                  "object " + first.key + " is in several ranks' metadata; the first is used");
      });
  if (tables.size() > 1) {
    merged.planner_data =
        sorted_by_key(std::move(merged.planner_data), [](PlannerEntry&, PlannerEntry&&) {});
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
