#include "core/reshard/rank_values.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/base/print.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/geometry/blocks.hpp"
#include "core/reshard/reshard_seamed.hpp"

namespace reprise {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20U;

class RankChooser {
 public:
  /// `elsewise` begins the advice if values differ.
  RankChooser(Checkpoint& checkpoint, std::optional<PerRank> per_rank, Device& device,
              std::string_view elsewise = {})
      : checkpoint_(checkpoint),
        per_rank_(per_rank),
        else_(elsewise),
        device_(device),
        staging_(kBlockBytes),
        left_(kBlockBytes),
        right_(kBlockBytes) {
    settled_.metadata = checkpoint.metadata();
  }

  ChosenValues choose() {
    Metadata& metadata = settled_.metadata;
    choose(metadata.catalog.tensors);
    choose(metadata.catalog.objects);
    rename_planner_entries();
    metadata.ranks.clear();
    return std::move(settled_);
  }

  Metadata merge_equal() {
    Metadata& metadata = settled_.metadata;
    merge_equal(metadata.catalog.tensors);
    merge_equal(metadata.catalog.objects);
    rename_planner_entries();
    return std::move(metadata);
  }

 private:
  void rename_planner_entries() {
    std::vector<PlannerEntry> planner;
    for (PlannerEntry& entry : settled_.metadata.planner_data) {
      const auto name = names_.find(entry.key);
      if (name == names_.end()) {
        planner.push_back(std::move(entry));
      } else if (!name->second.empty()) {
        planner.push_back({name->second, std::move(entry.path)});
      }
    }
    settled_.metadata.planner_data = std::move(planner);
  }

  template <class Item>
  void merge_equal(std::vector<Item>& items) {
    std::map<std::string, std::vector<Item>> by_name;
    for (Item& item : items) by_name[std::string(name_of(item))].push_back(std::move(item));
    items.clear();
    for (auto& [name, copies] : by_name) {
      std::ranges::sort(
          copies, [](const Item& a, const Item& b) { return a.known_by.ranks < b.known_by.ranks; });
      if (copies.front().known_by.own && equal(copies)) {
        for (const Item& copy : copies) names_[copy.key].clear();
        names_[copies.front().key] = name;
        merge(name, copies);
      }
      std::ranges::move(copies, std::back_inserter(items));
    }
    std::ranges::sort(items, {}, &Item::key);
  }

  /// Leaves the first copy alone, as the one of all ranks.
  template <class Item>
  static void merge(const std::string& name, std::vector<Item>& copies) {
    KnownBy& known_by = copies.front().known_by;
    for (auto copy = copies.begin() + 1; copy != copies.end(); ++copy) {
      const auto& ranks = copy->known_by.ranks;
      known_by.ranks.insert(known_by.ranks.end(), ranks.begin(), ranks.end());
    }
    std::ranges::sort(known_by.ranks);
    known_by.own = false;
    copies.front().key = name;
    copies.erase(copies.begin() + 1, copies.end());
  }

  template <class Item>
  void choose(std::vector<Item>& items) {
    std::map<std::string, std::vector<Item>> by_name;
    for (Item& item : items) by_name[std::string(name_of(item))].push_back(std::move(item));
    items.clear();
    for (auto& [name, copies] : by_name) {
      std::ranges::sort(
          copies, [](const Item& a, const Item& b) { return a.known_by.ranks < b.known_by.ranks; });
      if (copies.front().known_by.own && !take_one(name, copies)) continue;
      Item& kept = copies.front();
      kept.key = name;
      kept.known_by = {};
      items.push_back(std::move(kept));
    }
  }

  /// Decides which value to keep if each rank in `copies` saved its own value under `name`. Keeps
  /// the first value. If the values differ and the rule is kDrop, keeps none. Returns true if a
  /// value is kept.
  template <class Item>
  bool take_one(const std::string& name, const std::vector<Item>& copies) {
    const bool same = same_in_all(copies);
    const bool dropped = !same && per_rank_ == PerRank::kDrop;
    if (!same && !per_rank_) refuse(name, copies);
    for (const Item& copy : copies) names_[copy.key].clear();
    if (dropped) settled_.dropped.push_back(name);
    if (!same && !dropped) settled_.of_first.push_back(name);
    if (!dropped) names_[copies.front().key] = name;
    return !dropped;
  }

  template <class Item>
  [[noreturn]] void refuse(const std::string& name, const std::vector<Item>& copies) const {
    throw Error(
        Code::kUsage,
        with_commas(copies.size()) + " of " + with_commas(checkpoint_.metadata().ranks.size()) +
            " ranks have their own values here, and these differ: " + std::string(else_) +
            "give --per-rank first (all get the first rank's value) or --per-rank drop",
        {.key = name, .file = checkpoint_.store().display(checkpoint_.location().directory)});
  }

  template <class Item>
  bool same_in_all(const std::vector<Item>& copies) {
    std::size_t ranks = 0;
    for (const Item& copy : copies) ranks += copy.known_by.ranks.size();
    return ranks == checkpoint_.metadata().ranks.size() && equal(copies);
  }

  template <class Item>
  bool equal(const std::vector<Item>& copies) {
    return std::all_of(copies.begin() + 1, copies.end(),
                       [&](const Item& copy) { return same(copies.front(), copy); });
  }

  bool same(const StoredTensor& a, const StoredTensor& b) {
    if (a.dtype != b.dtype || all_extents(a) != all_extents(b)) return false;
    TensorReader left({checkpoint_, device_, staging_}, a);
    TensorReader right({checkpoint_, device_, staging_}, b);
    const std::size_t width = size_of(a.dtype);
    bool same = true;
    for_each_block(
        logical_shape(a), static_cast<std::int64_t>(kBlockBytes / width), [&](const Box& block) {
          if (!same) return;
          left.read(block, left_.data());
          right.read(block, right_.data());
          const auto bytes =
              static_cast<std::ptrdiff_t>(block.elements()) * static_cast<std::ptrdiff_t>(width);
          same = std::equal(left_.begin(), left_.begin() + bytes, right_.begin());
        });
    return same;
  }

  bool same(const StoredObject& a, const StoredObject& b) {
    const auto left = checkpoint_.slice(a.key, a.file, a.range);
    const auto right = checkpoint_.slice(b.key, b.file, b.range);
    if (left->size() != right->size()) return false;
    for (std::uint64_t at = 0; at < left->size(); at += kBlockBytes) {
      const auto size =
          static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, left->size() - at));
      left->read_at(at, MutableByteSpan(left_.data(), size));
      right->read_at(at, MutableByteSpan(right_.data(), size));
      if (!std::equal(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(size),
                      right_.begin())) {
        return false;
      }
    }
    return true;
  }

  Checkpoint& checkpoint_;
  std::optional<PerRank> per_rank_;
  std::string_view else_;
  Device& device_;
  Bytes staging_;
  Bytes left_;
  Bytes right_;
  ChosenValues settled_;
  /// Maps old keys to new keys. The new key of a dropped item is empty.
  std::map<std::string, std::string> names_;
};

}  // namespace

std::optional<PerRank> as_requested(const RankChoice& choice, std::int64_t ranks_before) {
  const bool as_before =
      !choice.one_metadata && (choice.ranks == 0 || choice.ranks == ranks_before);
  if (choice.per_rank == PerRank::kKeep && !as_before) {
    throw Error(Code::kUsage, "--per-rank keep takes " + std::to_string(ranks_before) +
                                  " ranks, as many as saved");
  }
  if (!choice.per_rank && as_before) return PerRank::kKeep;
  return choice.per_rank;
}

ChosenValues choose_values(Checkpoint& checkpoint, const RankChoice& choice, Device& device) {
  return choose_values(checkpoint, choice, device, {});
}

ChosenValues choose_values(Checkpoint& checkpoint, const RankChoice& choice, Device& device,
                           const ReshardSeams& seams) {
  const Metadata& metadata = checkpoint.metadata();
  if (metadata.ranks.empty()) {
    if (choice.per_rank) {
      throw Error(Code::kUsage,
                  "--per-rank is for checkpoints in which each rank has its own metadata, but this "
                  "one has a .metadata for all ranks",
                  {.file = checkpoint.store().display(checkpoint.location().directory)});
    }
    return {metadata};
  }
  const auto per_rank = seams.per_rank(choice, static_cast<std::int64_t>(metadata.ranks.size()));
  if (per_rank == PerRank::kKeep) return {metadata};
  const std::string_view elsewise = choice.one_metadata
                                        ? "torch before 2.9 reads one .metadata for all ranks, so "
                                        : "keep the number of ranks, or ";
  return RankChooser(checkpoint, per_rank, device, elsewise).choose();
}

Metadata with_equal_copies_merged(Checkpoint& checkpoint, Device& device) {
  if (checkpoint.metadata().ranks.empty()) return checkpoint.metadata();
  return RankChooser(checkpoint, {}, device).merge_equal();
}

}  // namespace reprise
