#pragma once
// A life of two ranks with which the judge of lives finds nothing wrong, for tests to spoil.

#include "driver/record/record.hpp"

namespace reprise::driver::test {

inline HeldItem held(const std::string& key, std::int32_t replica, std::uint64_t hash) {
  return {key, Box::whole({2}), replica, {hash, hash}};
}

/// Returns a life of two ranks that saved twice and loaded once.
inline LifeRecord good_life() {
  LifeRecord life;
  for (std::int32_t r = 0; r < 2; ++r) {
    RankRecord record;
    record.ending = Ending::kReturned;
    record.result.rank = r;
    for (const std::int64_t step : {3, 5}) {
      record.audits.push_back({GlobalRank{r}, step, {held("w", r, 9)}, {{"['args']", 1}}});
    }
    for (const std::int64_t step : {3, 5}) {
      SaveEvidence save;
      save.point.step = Step{step};
      save.live = {r == 0 ? "a" : "b", "w"};
      if (r == 0) save.stored = {"a", "b", "w"};
      record.saves.push_back(save);
    }
    record.loads = {{.step = 3, .requested = {r == 0 ? "a" : "b", "w"}}};
    record.absent = {r == 0 ? "b" : "a"};
    life.ranks.push_back(record);
  }
  life.ranks[0].loads[0].stored = {"a", "b", "w"};
  return life;
}

}  // namespace reprise::driver::test
