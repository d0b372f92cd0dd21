#include "core/format/metadata_tables.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/check.hpp"
#include "core/base/key_order.hpp"
#include "core/format/rank_tables.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

constexpr std::size_t kNotesOfAKindMax = 8;

template <class Item>
void sort_by_key(std::vector<Item>& items) {
  sort_by_keys(items, [](const Item& item) -> const std::string& { return item.key; });
}

Metadata single_table(MetadataTables table, FileNames names, Notes notes) {
  Metadata read;
  read.catalog.tensors = std::move(table.tensors);
  read.catalog.objects = std::move(table.objects);
  sort_by_key(read.catalog.tensors);
  sort_by_key(read.catalog.objects);
  read.catalog.files = names.take();
  read.planner_data = std::move(table.planner_data);
  read.checkpoint_id = std::move(table.checkpoint_id);
  read.save_id = std::move(table.save_id);
  read.version = std::move(table.version);
  read.forms = table.forms;
  read.has_local_plans = table.has_local_plans;
  read.notes = notes.take();
  return read;
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

Metadata read_metadata(std::span<const ByteSpan> files, std::span<const std::string> names) {
  CHECK(files.size() == names.size() && !files.empty(), files.size(), names.size());
  FileNames file_names;
  Notes notes;
  std::vector<MetadataTables> tables;
  for (std::size_t i = 0; i < files.size(); ++i) {
    tables.push_back(read_tables(files[i], names[i], file_names, notes));
    const auto rank = rank_of_metadata(names[i].substr(names[i].rfind('/') + 1));
    const bool one = files.size() == 1;
    tables.back().rank = rank.value_or(one ? -1 : static_cast<std::int32_t>(i));
  }
  if (tables.front().rank < 0) {
    return single_table(std::move(tables.front()), std::move(file_names), std::move(notes));
  }
  try {
    return merge_rank_tables(std::move(tables), std::move(file_names), std::move(notes));
  } catch (const Error& error) {
    const bool one = names.size() == 1;
    throw error.within({.file = one ? names[0] : names.front() + " to " + names.back()});
  }
}

std::optional<std::int32_t> rank_of_metadata(std::string_view name) {
  constexpr std::string_view kPrefix = "__";
  if (!name.starts_with(kPrefix) || !name.ends_with(kMetadataFile)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(std::min(name.size(), kMetadataFile.size()));
  std::int32_t rank = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  const bool whole = error == std::errc{} && end == name.data() + name.size();
  return whole && rank >= 0 ? std::optional(rank) : std::nullopt;
}

Metadata seen_by(const Metadata& all, std::int32_t rank) {
  Metadata seen = all;
  const auto to_others = [rank](const auto& item) {
    return std::ranges::find(item.known_by.ranks, rank) == item.known_by.ranks.end();
  };
  std::map<std::string, std::string> names;  // catalog key to plain name, for the rank's own items
  const auto see = [&](auto& items) {
    std::erase_if(items, [&](const auto& item) { return item.known_by.own && to_others(item); });
    for (auto& item : items) {
      const std::string name(name_of(item));
      if (item.known_by.own) names.emplace(item.key, name);
      item.key = name;
      item.known_by.own = false;
    }
    sort_by_key(items);
  };
  see(seen.catalog.tensors);
  see(seen.catalog.objects);
  seen.planner_data.clear();
  const auto is_there = [&seen](const std::string& key) {
    return seen.catalog.tensor(key) != nullptr || seen.catalog.object(key) != nullptr;
  };
  for (const PlannerEntry& entry : all.planner_data) {
    const auto own = names.find(entry.key);
    if (own != names.end()) {
      seen.planner_data.push_back({own->second, entry.path});
    } else if (is_there(entry.key)) {
      seen.planner_data.push_back(entry);
    }
  }
  return seen;
}

std::vector<MetadataFile> metadata_files(const Metadata& metadata) {
  if (metadata.ranks.empty()) return {{std::string(kMetadataFile), write_metadata(metadata)}};
  std::vector<MetadataFile> files;
  for (const std::int32_t rank : metadata.ranks) {
    Metadata seen = seen_by(metadata, rank);
    const auto unknown = [rank](const auto& item) {
      return std::ranges::find(item.known_by.ranks, rank) == item.known_by.ranks.end();
    };
    std::erase_if(seen.catalog.tensors, unknown);
    std::erase_if(seen.catalog.objects, unknown);
    files.push_back(
        {"__" + std::to_string(rank) + std::string(kMetadataFile), write_metadata(seen)});
  }
  return files;
}

}  // namespace reprise
