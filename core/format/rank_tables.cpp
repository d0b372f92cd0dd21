#include "core/format/rank_tables.hpp"

#include "core/geometry/folded_shape.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "reprise/error.hpp"

namespace reprise {
namespace {

/// Adds two numbers. If the sum overflows, as sums of volumes in a hostile file can, returns the
/// largest number.
std::uint64_t add_up(std::uint64_t sum, std::uint64_t more) {
  return sum > UINT64_MAX - more ? UINT64_MAX : sum + more;
}

std::uint64_t volume_of(const Box& box) { return static_cast<std::uint64_t>(box.elements()); }

/// One copy of a tensor, assembled from the pieces of several ranks. The pieces fit together.
class Copy {
 public:
  explicit Copy(StoredTensor tensor) : tensor_(std::move(tensor)) {
    for (std::size_t i = 0; i < tensor_.chunks.size(); ++i) note(i);
    before_ = tensor_.chunks.size();
  }

  /// Adds the pieces of `more` to this copy. Returns false and adds nothing in three cases: dtype
  /// or shapes differ; this copy and `more` have stored the same box at different positions; or
  /// this copy is complete, but lacks a box of `more`. If only one of the two has storage for a
  /// box, the copy uses that storage.
  bool take(const StoredTensor& more) {
    if (has_no_room_for(more)) return false;
    for (const StoredChunk& chunk : more.chunks) {
      const auto known = places_.find(chunk.box);
      if (known != places_.end() && known->second < before_) {
        StoredChunk& mine = tensor_.chunks[known->second];
        if (mine.file == kNoFile) mine = chunk;
        continue;
      }
      tensor_.chunks.push_back(chunk);
      note(tensor_.chunks.size() - 1);
    }
    before_ = tensor_.chunks.size();
    tensor_.known_by.ranks.push_back(more.known_by.ranks.front());
    return true;
  }

  bool complete() const { return volume_ >= static_cast<std::uint64_t>(volume(tensor_.shape)); }
  bool like(const StoredTensor& other) const {
    return tensor_.dtype == other.dtype && tensor_.shape == other.shape &&
           tensor_.original_shape == other.original_shape && tensor_.folded == other.folded;
  }
  const StoredTensor& tensor() const { return tensor_; }
  StoredTensor release() { return std::move(tensor_); }

 private:
  void note(std::size_t index) {
    places_.try_emplace(tensor_.chunks[index].box, index);
    volume_ = add_up(volume_, volume_of(tensor_.chunks[index].box));
  }

  bool has_no_room_for(const StoredTensor& more) const {
    if (!like(more)) return true;
    bool fresh = false;
    for (const StoredChunk& chunk : more.chunks) {
      if (volume_of(chunk.box) == 0) continue;
      const auto known = places_.find(chunk.box);
      if (known == places_.end()) {
        fresh = true;
        continue;
      }
      const StoredChunk& mine = tensor_.chunks[known->second];
      if (chunk.file != kNoFile && mine.file != kNoFile && chunk != mine) return true;
    }
    return fresh && complete();
  }

  StoredTensor tensor_;
  std::map<Box, std::size_t> places_;  ///< for each box, the index of the first chunk with that box
  std::size_t before_ = 0;             ///< number of chunks added by earlier ranks
  std::uint64_t volume_ = 0;
};

/// Upper limit on the number of copies that are tried in a row.
constexpr std::size_t kTriedMax = 64;

[[noreturn]] void refuse_drift(const StoredTensor& a, const StoredTensor& b) {
  if (a.shape != b.shape || a.original_shape != b.original_shape || a.folded != b.folded) {
    throw Error(Code::kShapeDrift,
                "the metadata of different ranks disagree on the shape: " +
                    shape_text(all_extents(a)) + " and " + shape_text(all_extents(b)),
                {.key = a.key});
  }
  throw Error(Code::kDtypeDrift,
              "the metadata of different ranks disagree on the element type: " +
                  std::string(name_of(a.dtype)) + " and " + std::string(name_of(b.dtype)),
              {.key = a.key});
}

/// Throws if ranks that have only parts of a tensor disagree on its dtype or shape.
void require_agreement(const std::vector<Copy>& copies) {
  const Copy* partial = nullptr;
  for (const Copy& copy : copies) {
    if (copy.complete()) continue;
    if (partial != nullptr && !partial->like(copy.tensor())) {
      refuse_drift(partial->tensor(), copy.tensor());
    }
    partial = &copy;
  }
}

/// The copies of one tensor.
class Copies {
 public:
  /// Adds what one rank has to the copy whose bytes it refers to, else to the first copy that has
  /// room, else as a new copy.
  void add(StoredTensor tensor) {
    const StoredChunk* first = first_stored(tensor);
    const std::size_t copy = index_for(tensor, first);
    if (first != nullptr) next_[first->box] = copy + 1;
    for (const StoredChunk& chunk : tensor.chunks) {
      if (is_stored(chunk)) holders_.try_emplace({chunk.file, chunk.range.offset}, copy);
    }
    if (copy == copies_.size()) {
      open_.insert(copy);
      copies_.emplace_back(std::move(tensor));
    }
    // Ranks that have nothing of a tensor are noted in the first copy.
    if (copy != 0 && copies_[copy].complete()) open_.erase(copy);
  }

  std::vector<StoredTensor> release() {
    require_agreement(copies_);
    std::vector<StoredTensor> tensors;
    for (Copy& copy : copies_) tensors.push_back(copy.release());
    return tensors;
  }

 private:
  static bool is_stored(const StoredChunk& chunk) {
    return chunk.file != kNoFile && volume_of(chunk.box) != 0;
  }

  static const StoredChunk* first_stored(const StoredTensor& tensor) {
    const auto found = std::ranges::find_if(tensor.chunks, is_stored);
    return found == tensor.chunks.end() ? nullptr : &*found;
  }

  /// Returns the index of the copy that took `tensor`, or of the one to open for it. `first` is its
  /// first chunk in a file.
  std::size_t index_for(const StoredTensor& tensor, const StoredChunk* first) {
    if (first != nullptr) {
      const auto holder = holders_.find({first->file, first->range.offset});
      if (holder != holders_.end() && copies_[holder->second].take(tensor)) return holder->second;
    }
    if (const auto taken = try_from(0, tensor)) return *taken;
    const auto next = first == nullptr ? next_.end() : next_.find(first->box);
    if (next == next_.end()) return copies_.size();
    return try_from(next->second, tensor).value_or(copies_.size());
  }

  std::optional<std::size_t> try_from(std::size_t copy, const StoredTensor& tensor) {
    std::size_t tried = 0;
    for (auto at = open_.lower_bound(copy); at != open_.end() && tried < kTriedMax; ++at, ++tried) {
      if (copies_[*at].take(tensor)) return *at;
    }
    return std::nullopt;
  }

  std::vector<Copy> copies_;
  std::set<std::size_t> open_;  ///< the copies to which other bytes may be added
  /// For the file and the offset of each stored chunk, the copy that has it.
  std::map<std::pair<FileIndex, std::uint64_t>, std::size_t> holders_;
  /// For each box, the copy after the last that took it: most likely the first that lacks it.
  std::map<Box, std::size_t> next_;
};

std::vector<StoredTensor> copies_of(std::span<StoredTensor> of_ranks) {
  Copies copies;
  for (StoredTensor& tensor : of_ranks) copies.add(std::move(tensor));
  return copies.release();
}

/// Merges objects that refer to the same byte range of the same file.
std::vector<StoredObject> copies_of(std::span<StoredObject> of_ranks) {
  std::map<std::pair<FileIndex, std::uint64_t>, std::size_t> known;
  std::vector<StoredObject> copies;
  for (StoredObject& object : of_ranks) {
    const auto [found, is_new] =
        known.try_emplace({object.file, object.range.offset}, copies.size());
    if (is_new || object.file == kNoFile || object.range != copies[found->second].range) {
      copies.push_back(std::move(object));
    } else {
      copies[found->second].known_by.ranks.push_back(object.known_by.ranks.front());
    }
  }
  return copies;
}

/// Maps a pair (key, rank that wrote it) to the key's new name in the catalog.
using KeyNames = std::map<std::pair<std::string, std::int32_t>, std::string>;

template <class Item>
void mark_own(Item& item, KeyNames& names) {
  const std::string key = item.key + own_suffix(item.known_by.ranks.front());
  for (const std::int32_t rank : item.known_by.ranks) names.emplace(std::pair(item.key, rank), key);
  item.key = key;
  item.known_by.own = true;
}

/// Calls visit(items of one key) for each key. Items of one key keep their relative order.
template <class Item, class Visit>
void each_key(std::vector<Item>& items, const Visit& visit) {
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.key < b.key; });
  for (auto first = items.begin(); first != items.end();) {
    const auto end = std::find_if(first + 1, items.end(),
                                  [&](const Item& item) { return item.key != first->key; });
    visit(std::span<Item>(first, end));
    first = end;
  }
}

class RankMerger {
 public:
  void take(MetadataTables& table) {
    const std::int32_t rank = table.rank;
    for (StoredTensor& tensor : table.tensors) add(tensor, rank, tensors_);
    for (StoredObject& object : table.objects) add(object, rank, objects_);
    place_ += static_cast<std::uint32_t>(table.tensors.size() + table.objects.size());
    for (PlannerEntry& entry : table.planner_data) planner_.emplace_back(rank, std::move(entry));
    merged_.ranks.push_back(rank);
    merged_.forms.add(table.forms);
    if (merged_.checkpoint_id.empty()) merged_.checkpoint_id = table.checkpoint_id;
    if (merged_.save_id.empty()) merged_.save_id = table.save_id;
    if (merged_.version.empty()) merged_.version = table.version;
    merged_.has_local_plans = merged_.has_local_plans || table.has_local_plans;
  }

  Metadata merge() {
    std::set<std::string> of_tensors;
    Catalog& catalog = merged_.catalog;
    each_key(tensors_, [&](std::span<StoredTensor> of_ranks) {
      of_tensors.insert(of_ranks.front().key);
      auto copies = copies_of(of_ranks);
      const bool own = copies.size() > 1;
      for (StoredTensor& copy : copies) {
        if (own) mark_own(copy, names_);
        catalog.tensors.push_back(std::move(copy));
      }
    });
    each_key(objects_, [&](std::span<StoredObject> of_ranks) {
      if (of_tensors.contains(of_ranks.front().key)) {
        throw Error(Code::kUnsupported, "the key is a tensor of one rank and an object of another",
                    {.key = of_ranks.front().key});
      }
      auto copies = copies_of(of_ranks);
      const bool own = copies.size() > 1;
      for (StoredObject& object : copies) {
        if (own) mark_own(object, names_);
        catalog.objects.push_back(std::move(object));
      }
    });
    std::ranges::sort(catalog.tensors, {}, &StoredTensor::key);
    std::ranges::sort(catalog.objects, {}, &StoredObject::key);
    require_distinct();
    merge_planner_data();
    return std::move(merged_);
  }

 private:
  template <class Item>
  void add(Item& item, std::int32_t rank, std::vector<Item>& to) const {
    item.known_by.ranks = {rank};
    item.place += place_;
    to.push_back(std::move(item));
  }

  void require_distinct() const {
    std::set<std::string_view> keys;
    const auto add = [&keys](const std::string& key) {
      if (keys.insert(key).second) return;
      throw Error(Code::kUnsupported,
                  "a key of one rank equals the name that another rank's item would get here",
                  {.key = key});
    };
    for (const auto& tensor : merged_.catalog.tensors) add(tensor.key);
    for (const auto& object : merged_.catalog.objects) add(object.key);
  }

  /// Merges the entries in file order. If several ranks share a key, the first entry is used.
  void merge_planner_data() {
    std::set<std::string> known;
    for (auto& [rank, entry] : planner_) {
      const auto own = names_.find({entry.key, rank});
      if (own != names_.end()) entry.key = own->second;
      if (known.insert(entry.key).second) merged_.planner_data.push_back(std::move(entry));
    }
  }

  Metadata merged_;
  std::vector<StoredTensor> tensors_;
  std::vector<StoredObject> objects_;
  std::vector<std::pair<std::int32_t, PlannerEntry>> planner_;
  KeyNames names_;
  std::uint32_t place_ = 0;
};

}  // namespace

Metadata merge_rank_tables(std::vector<MetadataTables> tables, FileNames names, Notes notes) {
  RankMerger merger;
  for (MetadataTables& table : tables) merger.take(table);
  Metadata merged = merger.merge();
  merged.catalog.files = names.take();
  merged.notes = notes.take();
  return merged;
}

}  // namespace reprise
