#include "core/engine/diff_objects.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/print.hpp"
#include "core/engine/layout_bound.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {
namespace {

/// Larger items are compared as bytes, so that one object cannot take all memory.
constexpr std::uint64_t kDecodedMax = std::uint64_t{16} << 20U;
/// Layout arguments of the common state that are listed; there are eleven names.
constexpr std::size_t kLayoutListed = 64;

/// "rng_state" of "rng_state/shard_0.1_2.4"; other keys as they are.
std::string base_of(const std::string& key) {
  const auto parsed = parse_object_key(key);
  return parsed ? parsed->key : key;
}

/// The grids that the shards of one key claim.
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

bool same_bytes(ItemSource& left, ItemSource& right) {
  if (left.size() != right.size()) return false;
  constexpr std::uint64_t kStep = std::uint64_t{256} << 10U;
  Bytes a(kStep);
  Bytes b(kStep);
  for (std::uint64_t at = 0; at < left.size(); at += kStep) {
    const auto size = static_cast<std::size_t>(std::min(kStep, left.size() - at));
    left.read_at(at, MutableByteSpan(a.data(), size));
    right.read_at(at, MutableByteSpan(b.data(), size));
    if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(size), b.begin())) {
      return false;
    }
  }
  return true;
}

void judge_bytes(bool same, const std::string& why, ObjectDiff& result) {
  result.opaque = true;
  result.verdict = same ? DiffVerdict::kSame : DiffVerdict::kDifferent;
  result.reason = "compared as bytes: " + why;
}

class ObjectDiffer {
 public:
  ObjectDiffer(Checkpoint& left, Checkpoint& right, const DiffOptions& options,
               ChecksumTally& left_checksums, ChecksumTally& right_checksums, DiffReport& report)
      : left_(left),
        right_(right),
        options_(options),
        left_checksums_(left_checksums),
        right_checksums_(right_checksums),
        report_(report) {}

  void run() {
    if (wanted(kCommonStatePath)) compare_common();
    for (const std::string& key : keys()) {
      const std::string base = base_of(key);
      if (is_layout_bound(base) && !same_grid(base)) continue;
      compare(key, left_.catalog().object(key), right_.catalog().object(key));
    }
    std::sort(report_.objects.begin() + static_cast<std::ptrdiff_t>(common_entries_),
              report_.objects.end(),
              [](const ObjectDiff& a, const ObjectDiff& b) { return a.key < b.key; });
  }

 private:
  bool wanted(std::string_view key) const { return !options_.wanted || options_.wanted(key); }

  /// Keys of both sides that take part, in order.
  std::set<std::string> keys() const {
    std::set<std::string> all;
    for (const Catalog* catalog : {&left_.catalog(), &right_.catalog()}) {
      for (const auto& object : catalog->objects) {
        if (object.key != kCommonObjectKey && wanted(object.key)) all.insert(object.key);
      }
    }
    return all;
  }

  /// Does the key have the same grid on both sides? Found out once for all its shards; if not, it
  /// is listed once as not comparable.
  bool same_grid(const std::string& base) {
    const auto [known, is_new] = same_grid_.try_emplace(base, true);
    if (!is_new) return known->second;
    const auto left = grids_of(left_.catalog(), base);
    const auto right = grids_of(right_.catalog(), base);
    if (left == right) return true;
    known->second = false;
    const auto words = [](const std::set<std::string>& grids) {
      return grids.empty() ? std::string("absent") : "grid " + join(grids, ", ");
    };
    report_.objects.push_back(
        {.key = base,
         .verdict = DiffVerdict::kNotComparable,
         .reason = "bound to its layout: " + words(left) + " in A, " + words(right) + " in B"});
    return false;
  }

  void compare(const std::string& key, const StoredObject* left, const StoredObject* right) {
    ObjectDiff result{.key = key};
    if (left == nullptr || right == nullptr) {
      result.verdict = left != nullptr ? DiffVerdict::kOnlyLeft : DiffVerdict::kOnlyRight;
    } else {
      const auto a = left_.slice(key, left->file, left->range);
      const auto b = right_.slice(key, right->file, right->range);
      if (options_.checksums) {
        left_checksums_.add(*a, key);
        right_checksums_.add(*b, key);
      }
      compare(*a, *b, result);
      count(result);
    }
    report_.objects.push_back(std::move(result));
  }

  void compare(ItemSource& left, ItemSource& right, ObjectDiff& result) {
    if (std::max(left.size(), right.size()) > kDecodedMax) {
      return judge_bytes(same_bytes(left, right), "larger than " + human_bytes(kDecodedMax),
                         result);
    }
    const BytesItem a = read_bytes_item(left);
    const BytesItem b = read_bytes_item(right);
    if (a.value && b.value) return judge_values(*a.value, *b.value, result);
    judge_bytes(same_bytes(left, right), a.value ? b.opaque_because : a.opaque_because, result);
  }

  void judge_values(const Value& left, const Value& right, ObjectDiff& result) const {
    result.differences = differences(left, right, options_.differences_max);
    if (!result.differences.empty()) result.verdict = DiffVerdict::kDifferent;
  }

  void compare_common() {
    const auto left = left_.common();
    const auto right = right_.common();
    if (!left && !right) return;
    ObjectDiff result{.key = std::string(kCommonStatePath)};
    if (!left || !right) {
      result.verdict = left ? DiffVerdict::kOnlyLeft : DiffVerdict::kOnlyRight;
    } else {
      if (!left->item.value || !right->item.value) {
        judge_bytes(common_bytes(left_, *left) == common_bytes(right_, *right),
                    left->item.value ? right->item.opaque_because : left->item.opaque_because,
                    result);
      } else {
        judge_common(*left->item.value, *right->item.value, result);
      }
      count(result);
    }
    report_.objects.insert(report_.objects.begin(), std::move(result));
    common_entries_ = report_.objects.size();
  }

  /// Differences whose paths take part; the paths say where in the common state they are. What
  /// describes the layout is listed apart.
  void judge_common(const Value& left, const Value& right, ObjectDiff& result) {
    const auto full_path = [](const std::string& path) {
      return std::string(kCommonStatePath) + path;
    };
    const std::size_t most = std::max<std::size_t>(options_.differences_max, 1);
    result.differences = differences(left, right, most, [&](const std::string& path) {
      return !is_layout_argument(path) && wanted(full_path(path));
    });
    if (!result.differences.empty()) result.verdict = DiffVerdict::kDifferent;
    result.differences.resize(std::min(result.differences.size(), options_.differences_max));
    for (auto& difference : result.differences) difference.path = full_path(difference.path);
    const auto bound = differences(left, right, kLayoutListed, [&](const std::string& path) {
      return is_layout_argument(path) && wanted(full_path(path));
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
    ++report_.objects_compared;
    if (result.opaque) ++report_.objects_opaque;
  }

  Checkpoint& left_;
  Checkpoint& right_;
  const DiffOptions& options_;
  ChecksumTally& left_checksums_;
  ChecksumTally& right_checksums_;
  DiffReport& report_;
  std::map<std::string, bool> same_grid_;  ///< by base key
  std::size_t common_entries_ = 0;
};

}  // namespace

void diff_objects(Checkpoint& left, Checkpoint& right, const DiffOptions& options,
                  ChecksumTally& left_checksums, ChecksumTally& right_checksums,
                  DiffReport& report) {
  ObjectDiffer(left, right, options, left_checksums, right_checksums, report).run();
}

}  // namespace reprise
