#include "core/plan/object_plan.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/print.hpp"

namespace reprise {
namespace {

/// All offers of one shard of an object.
struct Shard {
  const std::string* name;
  ObjectKey place;  ///< of a plain object its key alone
  std::int64_t linear = 0;
  std::vector<GlobalRank> ranks;
  std::vector<GroupRank> mains;
  std::vector<GroupRank> any;  ///< holders of copies without a number

  bool is_plain() const { return place.grid.empty(); }
};

struct Offer {
  const ObjectOffer* offer;
  GroupRank rank;
};

std::vector<Offer> sorted_offers(std::span<const LocalPlan> plans) {
  std::vector<Offer> offers;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    for (const ObjectOffer& offer : plans[r].objects) {
      offers.push_back({&offer, {static_cast<std::int32_t>(r)}});
    }
  }
  std::stable_sort(offers.begin(), offers.end(),
                   [](const Offer& a, const Offer& b) { return a.offer->key < b.offer->key; });
  return offers;
}

Error object_error(Code code, const std::string& what, const std::string& name) {
  return Error(code, what, {.key = name});
}

ObjectKey parsed(const std::string& name) {
  auto place = parse_object_key(name);
  const auto within = [&place] {
    for (std::size_t d = 0; d < place->grid.size(); ++d) {
      if (place->coordinate[d] >= place->grid[d]) return false;
    }
    return true;
  };
  if (!place || place->coordinate.size() != place->grid.size() || !within()) {
    throw object_error(Code::kLayoutMismatch, "an object's coordinate lies outside its grid", name);
  }
  return *place;
}

std::vector<Shard> shards_of(std::span<const LocalPlan> plans, const Group& savers) {
  std::vector<Shard> shards;
  for (const Offer& at : sorted_offers(plans)) {
    if (shards.empty() || *shards.back().name != at.offer->key) {
      const ObjectKey place =
          at.offer->plain ? ObjectKey{at.offer->key, {}, {}} : parsed(at.offer->key);
      shards.push_back({&at.offer->key, place, 0, {}, {}, {}});
    }
    Shard& shard = shards.back();
    if (at.offer->plain != shard.is_plain()) {
      auto saves_bytes = savers.member(at.rank);
      auto saves_object = shard.ranks.front();
      if (!at.offer->plain) std::swap(saves_bytes, saves_object);
      throw object_error(Code::kLayoutMismatch,
                         "rank " + std::to_string(saves_bytes.value) +
                             " saves bytes under this key, but rank " +
                             std::to_string(saves_object.value) + " saves an object",
                         at.offer->key);
    }
    shard.ranks.push_back(savers.member(at.rank));
    if (at.offer->replica == 0) shard.mains.push_back(at.rank);
    if (at.offer->replica == kAnyCopy) shard.any.push_back(at.rank);
  }
  return shards;
}

/// Returns the rank that writes the object.
GroupRank writer_of(const Shard& shard, const Group& savers) {
  if (shard.mains.size() == 1) return shard.mains.front();
  if (shard.mains.empty() && !shard.any.empty()) return shard.any.front();
  if (shard.mains.empty()) {
    throw object_error(Code::kNoWriter,
                       "no rank holds the main copy of this object; other copies are on ranks " +
                           join(shard.ranks, " "),
                       *shard.name);
  }
  std::vector<GlobalRank> mains;
  for (const GroupRank rank : shard.mains) mains.push_back(savers.member(rank));
  throw object_error(Code::kMultiWriter,
                     "ranks " + join(mains, " ") + " each claim the main copy of this object",
                     *shard.name);
}

/// Throws unless the shards of one key agree on their grid and fill it.
void check_grid(std::span<Shard> shards) {
  const ObjectKey& first = shards.front().place;
  const auto count = checked_volume(first.grid);
  for (Shard& shard : shards) {
    if (!(shard.place.grid == first.grid)) {
      throw object_error(Code::kLayoutMismatch,
                         "shards of one object disagree on its grid: " + to_string(first.grid) +
                             " on rank " + std::to_string(shards.front().ranks.front().value) +
                             " and " + to_string(shard.place.grid) + " on rank " +
                             std::to_string(shard.ranks.front().value),
                         first.key);
    }
    if (count) shard.linear = linear_index(shard.place.coordinate, first.grid);
  }
  if (!count) {
    throw object_error(Code::kLayoutMismatch,
                       "an object can't have a grid of " + to_string(first.grid), first.key);
  }
  std::vector<std::int64_t> held;
  for (const Shard& shard : shards) held.push_back(shard.linear);
  std::sort(held.begin(), held.end());
  // Two names may refer to the same shard, for example "shard_1_2" and "shard_01_2".
  if (std::adjacent_find(held.begin(), held.end()) != held.end()) {
    throw object_error(Code::kMultiWriter, "two names refer to one shard of this object",
                       first.key);
  }
  if (static_cast<std::int64_t>(shards.size()) == *count) return;
  std::vector<Dims> absent;
  std::int64_t next = 0;
  constexpr std::size_t kNamed = 8;
  held.push_back(*count);
  for (const std::int64_t at : held) {
    for (; next < at && absent.size() < kNamed; ++next) {
      absent.push_back(index_at(next, first.grid));
    }
    next = at + 1;
  }
  const auto missing = static_cast<std::uint64_t>(*count) - shards.size();
  throw object_error(Code::kCoverageGap,
                     "no rank offers " + std::to_string(missing) + " of the " +
                         std::to_string(*count) + " shards of this object: coordinates " +
                         join(absent, " ") + (missing > absent.size() ? " and more" : ""),
                     first.key);
}

}  // namespace

std::vector<PlannedObject> plan_objects(std::span<const LocalPlan> plans, const Group& savers) {
  std::vector<Shard> shards = shards_of(plans, savers);
  std::vector<PlannedObject> planned;
  planned.reserve(shards.size());
  std::vector<Shard> gridded;
  std::copy_if(shards.begin(), shards.end(), std::back_inserter(gridded),
               [](const Shard& shard) { return !shard.is_plain(); });
  for (std::size_t first = 0; first < gridded.size();) {
    std::size_t last = first;
    // The list is sorted by name, and no key of a shard contains '/'. Shards of one key, such as
    // "a/shard_0_1" and "a/shard_1_1", are therefore adjacent.
    while (last < gridded.size() && gridded[last].place.key == gridded[first].place.key) ++last;
    check_grid(std::span(gridded).subspan(first, last - first));
    first = last;
  }
  for (const Shard& shard : shards) {
    planned.push_back(
        {*shard.name, writer_of(shard, savers), static_cast<std::int32_t>(shard.ranks.size())});
  }
  return planned;
}

}  // namespace reprise
