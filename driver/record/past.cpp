#include "driver/record/past.hpp"

#include <algorithm>

namespace reprise::driver {
namespace {

/// Returns the saves that the ranks of the life recorded. A save is certain if at least one rank
/// recorded that it ended well.
std::vector<SavePoint> saves_of(const LifeRecord& life) {
  std::vector<SavePoint> saves;
  for (const auto& rank : life.ranks) {
    for (std::size_t i = 0; i < rank.saves.size(); ++i) {
      if (i == saves.size()) saves.push_back(rank.saves[i].point);
      saves[i].certain = saves[i].certain || rank.saves[i].point.certain;
    }
  }
  return saves;
}

}  // namespace

bool was_lied_to(const LifeRecord& life) {
  using Kind = sim::FaultKind;
  return std::any_of(life.ranks.begin(), life.ranks.end(), [](const RankRecord& rank) {
    return std::any_of(rank.faults.begin(), rank.faults.end(), [](const sim::FaultState& fault) {
      const Kind kind = fault.spec.kind;
      return fault.fired &&
             (kind == Kind::kShortWrite || kind == Kind::kFlipWrite || kind == Kind::kZeroWrite ||
              kind == Kind::kStaleWrite || kind == Kind::kLostSync || kind == Kind::kLostRename ||
              kind == Kind::kFleetingRename);
    });
  });
}

void add_life(const LifeRecord& life, Past& past) {
  const bool lied = was_lied_to(life);
  past.tracker_damaged = past.tracker_damaged || lied;
  for (auto save : saves_of(life)) {
    save.damaged = lied;
    save.certain = save.certain && !lied;
    if (save.certain) past.tracker_damaged = false;
    past.saves.push_back(save);
  }
  past.faults.clear();
  for (const auto& rank : life.ranks) {
    for (const auto& fault : rank.faults) {
      if (fault.armed && sim::outlives(fault.spec)) past.faults.push_back(fault.spec);
    }
  }
}

}  // namespace reprise::driver
