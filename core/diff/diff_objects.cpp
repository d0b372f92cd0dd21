#include "core/diff/diff_objects.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/print.hpp"
#include "core/diff/diff_values.hpp"
#include "core/diff/layout_bound.hpp"
#include "core/diff/rank_pairs.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {
namespace {

/// Upper limit on how many layout arguments of the common state are listed.
constexpr std::size_t kLayoutListed = 64;

/// Returns "rng_state" for "rng_state/shard_0.1_2.4". Returns other keys unchanged.
std::string base_of(const std::string& key) {
  const auto parsed = parse_object_key(key);
  return parsed ? parsed->key : key;
}

/// Reads the shard grid from the key of each shard of `base`, and returns the distinct grids.
std::set<std::string> grids_of(const Catalog& catalog, const std::string& base) {
  std::set<std::string> grids;
  const std::string prefix = base + "/";
  const auto first = std::lower_bound(
      catalog.objects.begin(), catalog.objects.end(), prefix,
      [](const StoredObject& object, const std::string& key) { return object.key < key; });
  for (auto at = first; at != catalog.objects.end() && at->key.starts_with(prefix); ++at) {
    const auto parsed = parse_object_key(at->key);
    if (parsed && parsed->key == base) grids.insert(to_string(parsed->grid));
  }
  return grids;
}

bool has_common_file(const Checkpoint& checkpoint) {
  const auto path = join_path(checkpoint.location().directory, std::string(kCommonFile));
  return checkpoint.store().stat(path).has_value();
}

bool has_common_object(const Checkpoint& checkpoint) {
  return checkpoint.catalog().object(kCommonObjectKey) != nullptr;
}

/// True if the checkpoint stores the common state twice, in a file and in an object. The file is
/// then read as the common state, and the object is compared like any other object.
bool has_common_twice(const Checkpoint& checkpoint) {
  return has_common_object(checkpoint) && has_common_file(checkpoint);
}

class ObjectDiffer {
 public:
  ObjectDiffer(DiffSides& sides, const DiffOptions& options, DiffReport& report)
      : sides_(sides), left_(sides.left), right_(sides.right), options_(options), report_(report) {}

  void run() {
    if (wanted(kCommonStatePath)) {
      compare_common();
    } else if (has_common(left_) || has_common(right_)) {
      ++report_.ignored_keys;
    }
    const bool common_twice = has_common_twice(left_) || has_common_twice(right_);
    for (const auto& pair :
         sides_.seams.objects(left_.catalog().objects, right_.catalog().objects)) {
      if (pair.key() == kCommonObjectKey && !common_twice) continue;
      if (!wanted(pair.key())) {
        ++report_.ignored_keys;
        continue;
      }
      const std::string base = base_of(std::string(pair.name()));
      if (is_layout_bound(base) && !comparable(base)) continue;
      compare(pair.key(), pair.left, pair.right);
    }
    std::sort(report_.objects.begin() + static_cast<std::ptrdiff_t>(common_entries_),
              report_.objects.end(),
              [](const ObjectDiff& a, const ObjectDiff& b) { return a.key < b.key; });
  }

 private:
  bool wanted(std::string_view key) const { return !options_.wanted || options_.wanted(key); }

  static bool has_common(const Checkpoint& checkpoint) {
    return has_common_object(checkpoint) || has_common_file(checkpoint);
  }

  /// False if both sides have the key, but with different grids: equal coordinates then refer to
  /// different positions. For such a key, the first call adds one entry to the report, which stands
  /// for all shards of the key. If only one side has the key, returns true.
  bool comparable(const std::string& base) {
    const auto [known, is_new] = comparable_.try_emplace(base, true);
    if (!is_new) return known->second;
    const auto left = grids_of(left_.catalog(), base);
    const auto right = grids_of(right_.catalog(), base);
    if (left == right || left.empty() || right.empty()) return true;
    known->second = false;
    report_.objects.push_back({.key = base,
                               .verdict = DiffVerdict::kNotComparable,
                               .reason = "depends on the layout: grid " + join(left, ", ") +
                                         " in A, grid " + join(right, ", ") + " in B"});
    return false;
  }

  void compare(const std::string& key, const StoredObject* left, const StoredObject* right) {
    ObjectDiff result{.key = key};
    if (left == nullptr || right == nullptr) {
      result.verdict = left != nullptr ? DiffVerdict::kOnlyLeft : DiffVerdict::kOnlyRight;
    } else {
      unless_unread(result, [&] {
        const auto a = left_.slice(key, left->file, left->range);
        const auto b = right_.slice(key, right->file, right->range);
        if (options_.checksums) {
          sides_.left_checksums.add(*a, key);
          sides_.right_checksums.add(*b, key);
        }
        compare(*a, *b, result);
      });
      if (result.verdict == DiffVerdict::kDifferent && is_optimizer_group(key) &&
          sides_.layouts_apart().in_any_way) {
        result.verdict = DiffVerdict::kNotComparable;
        result.reason = "depends on the layout, and the layouts differ";
      }
      count(result);
    }
    report_.objects.push_back(std::move(result));
  }

  /// Calls `compare`, which reads. If an item can't be read, the result says so instead.
  template <class Compare>
  void unless_unread(ObjectDiff& result, const Compare& compare) {
    try {
      compare();
    } catch (const Error& error) {
      if (!concerns_one_item(error)) throw;
      const Error placed = error.within({.key = result.key});
      result = {.key = std::move(result.key),
                .verdict = sides_.seams.unread(sides_.unread, placed),
                .differences = {},
                .reason = "it can't be read: " + placed.message(),
                .unread = true};
    }
  }

  void compare(ItemSource& left, ItemSource& right, ObjectDiff& result) {
    if (std::max(left.size(), right.size()) > kDecodedMax) {
      return judge_bytes(same_bytes(left, right), "larger than " + human_bytes(kDecodedMax),
                         result);
    }
    const WholeValue a = read_whole_item(left);
    const WholeValue b = read_whole_item(right);
    judge_items({left, a}, {right, b}, options_, sides_.seams, result);
  }

  void compare_common() {
    ObjectDiff result{.key = std::string(kCommonStatePath)};
    bool is_there = true;
    unless_unread(result, [&] { is_there = judge_stored_common(result); });
    if (!is_there) return note_lost_common();
    count(result);
    report_.objects.insert(report_.objects.begin(), std::move(result));
    common_entries_ = report_.objects.size();
  }

  /// Returns false if neither side has a common state.
  bool judge_stored_common(ObjectDiff& result) {
    const auto left = left_.common(options_.checksums ? &sides_.left_checksums : nullptr);
    const auto right = right_.common(options_.checksums ? &sides_.right_checksums : nullptr);
    if (!left && !right) return false;
    if (!left || !right) {
      result.verdict = left ? DiffVerdict::kOnlyLeft : DiffVerdict::kOnlyRight;
    } else if (!left->item.value || !right->item.value) {
      judge_bytes(common_bytes(left_, *left) == common_bytes(right_, *right),
                  left->item.value ? right->item.opaque_because : left->item.opaque_because,
                  result);
    } else {
      judge_common(*left->item.value, *right->item.value, result);
      doubt_common(*left, *right, result);
    }
    return true;
  }

  /// Reports damage for each side whose common state is missing. If it is missing on both sides,
  /// the checkpoints still do not count as equal, because the lost values may have differed.
  void note_lost_common() {
    for (const Checkpoint* side : {&left_, &right_}) {
      if (!side->lost_common()) continue;
      report_.damage.push_back({Severity::kError,
                                Code::kNotStored,
                                "the common state is missing",
                                {},
                                side->store().display(side->location().directory)});
    }
  }

  static std::string full_path(const std::string& path) {
    return std::string(kCommonStatePath) + path;
  }
  bool ignored(const ValueDifference& difference) const {
    return options_.path_ignored && options_.path_ignored(full_path(difference.path));
  }
  /// True for a layout argument that both sides have. If only one side has the argument, it was
  /// lost or added, and that is an ordinary difference.
  static bool is_bound(const ValueDifference& difference) {
    return is_layout_argument(difference.path) && !difference.one_sided;
  }

  /// Adds to the result the differences that are not ignored, with their full paths in the common
  /// state. Layout arguments are listed separately.
  void judge_common(const Value& left, const Value& right, ObjectDiff& result) {
    const std::size_t most = std::max<std::size_t>(options_.differences_max, 1);
    result.differences =
        sides_.seams.values(left, right, most, [this](const ValueDifference& difference) {
          return !is_bound(difference) && !ignored(difference);
        });
    if (!result.differences.empty()) result.verdict = DiffVerdict::kDifferent;
    result.differences.resize(std::min(result.differences.size(), options_.differences_max));
    for (auto& difference : result.differences) difference.path = full_path(difference.path);
    list_layout(left, right);
    if (!options_.path_ignored) return;
    differences(left, right, 1, [this](const ValueDifference& difference) {
      if (ignored(difference)) ++report_.ignored_differences;
      return false;  // false continues the search, so that all differences are counted
    });
  }

  /// If the verdict is "same", applies doubt_left_out() to the archives of the two common states.
  void doubt_common(const Checkpoint::Common& left, const Checkpoint::Common& right,
                    ObjectDiff& result) {
    if (result.verdict != DiffVerdict::kSame) return;
    const Bytes left_bytes = common_bytes(left_, left);
    const Bytes right_bytes = common_bytes(right_, right);
    SpanSource a(left_bytes);
    SpanSource b(right_bytes);
    doubt_left_out({a, read_whole_item(a)}, {b, read_whole_item(b)}, result);
  }

  void list_layout(const Value& left, const Value& right) {
    const auto bound =
        differences(left, right, kLayoutListed, [this](const ValueDifference& difference) {
          return is_bound(difference) && !ignored(difference);
        });
    for (const auto& difference : bound) {
      report_.objects.push_back({.key = full_path(difference.path),
                                 .verdict = DiffVerdict::kNotComparable,
                                 .reason = "describes the layout: " + difference.left + " in A, " +
                                           difference.right + " in B"});
    }
  }

  static Bytes common_bytes(Checkpoint& checkpoint, const Checkpoint::Common& common) {
    if (const auto* object = checkpoint.catalog().object(common.source)) {
      return checkpoint.object_bytes(*object);
    }
    return read_all(checkpoint.store(), join_path(checkpoint.location().directory, common.source),
                    kBytesItemMax);
  }

  void count(const ObjectDiff& result) {
    if (result.verdict != DiffVerdict::kSame && result.verdict != DiffVerdict::kDifferent) return;
    ++report_.objects_compared;
    if (result.opaque) ++report_.objects_opaque;
  }

  DiffSides& sides_;
  Checkpoint& left_;
  Checkpoint& right_;
  const DiffOptions& options_;
  DiffReport& report_;
  std::map<std::string, bool> comparable_;  ///< keyed by object key without coordinate
  std::size_t common_entries_ = 0;
};

}  // namespace

std::vector<Both<StoredObject>> pair_objects(const std::vector<StoredObject>& left,
                                             const std::vector<StoredObject>& right) {
  return pairs_of(left, right);
}

void diff_objects(DiffSides& sides, const DiffOptions& options, DiffReport& report) {
  ObjectDiffer(sides, options, report).run();
}

}  // namespace reprise
