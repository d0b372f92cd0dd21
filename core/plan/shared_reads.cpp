#include "core/plan/shared_reads.hpp"

#include <algorithm>
#include <map>

namespace reprise {
namespace {

using ClassSet = std::vector<std::uint32_t>;  ///< class numbers, ascending

std::vector<GroupRank> ranks_of(const ClassSet& set, std::span<const AlikeReaders> classes) {
  std::vector<GroupRank> ranks;
  for (const auto index : set) {
    ranks.insert(ranks.end(), classes[index].ranks.begin(), classes[index].ranks.end());
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace

SharedReads shared_reads(std::span<const AlikeReaders> classes, std::uint64_t room) {
  std::map<StoredRecord, ClassSet> needed;
  for (std::uint32_t index = 0; index < classes.size(); ++index) {
    for (const auto& record : classes[index].records) needed[record].push_back(index);
  }
  std::map<ClassSet, std::vector<StoredRecord>> alike;
  for (const auto& [record, set] : needed) alike[set].push_back(record);
  SharedReads plan;
  for (const auto& [set, records] : alike) {
    auto ranks = ranks_of(set, classes);
    if (ranks.size() < 2) continue;
    const std::size_t group = plan.groups.size();
    plan.groups.push_back(std::move(ranks));
    const std::size_t first = plan.rounds.size();
    for (const auto& record : records) {
      const bool full = plan.rounds.size() == first || plan.rounds.back().bytes > room ||
                        record.range.size > room - plan.rounds.back().bytes;
      if (full) plan.rounds.push_back({.group = group});
      plan.rounds.back().records.push_back(record);
      plan.rounds.back().bytes += record.range.size;
    }
  }
  return plan;
}

ByteRange share_of_round(std::uint64_t bytes, std::size_t members, std::size_t n) {
  constexpr std::uint64_t kAlignedMin = std::uint64_t{64} << 10U;
  const std::uint64_t unit = bytes / members < kAlignedMin ? 1 : 16;
  const auto parts_of = [](std::uint64_t whole, std::uint64_t part) {
    return whole / part + (whole % part == 0 ? 0 : 1);
  };
  const std::uint64_t each = parts_of(parts_of(bytes, unit), members) * unit;
  const std::uint64_t begin = std::min(bytes, n * each);
  return {begin, std::min(each, bytes - begin)};
}

}  // namespace reprise
