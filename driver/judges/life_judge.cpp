#include "driver/judges/life_judge.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "driver/language/scenario.hpp"
#include "properties/finding_code.hpp"

namespace reprise::driver {
namespace {

void sort_unique(Inventory& keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

/// Returns item number `i` of `list` for each rank whose list is long enough.
template <class Item>
std::vector<Item> each_ranks(const LifeRecord& life, std::vector<Item> RankRecord::*list,
                             std::size_t i) {
  std::vector<Item> items;
  for (const auto& rank : life.ranks) {
    if (i < (rank.*list).size()) items.push_back((rank.*list)[i]);
  }
  return items;
}

Findings judge_saves(const LifeRecord& life) {
  Findings findings;
  for (std::size_t i = 0;; ++i) {
    const auto pages = each_ranks(life, &RankRecord::audits, i);
    if (pages.empty()) return findings;
    findings.append(
        judge_replicas(pages, pages.size() == life.ranks.size() ? Pages::kAll : Pages::kSome));
  }
}

/// Checks that all ranks loaded the same checkpoint.
void judge_generation(const std::vector<LoadEvidence>& loads, Findings& findings) {
  for (const auto& load : loads) {
    if (load.step == loads.front().step) continue;
    findings.push_back({.code = judged::kMixedGeneration,
                        .text = "ranks loaded different checkpoints: of step " +
                                std::to_string(loads.front().step) + " and of step " +
                                std::to_string(load.step)});
    return;
  }
}

/// Checks that each checkpoint has exactly the keys that the ranks held when they saved it. A
/// reused plan that was made for another state would silently omit keys.
Findings judge_plans(const LifeRecord& life) {
  Findings findings;
  for (std::size_t i = 0;; ++i) {
    const auto saves = each_ranks(life, &RankRecord::saves, i);
    if (saves.empty()) return findings;
    Inventory live;
    Inventory stored;
    bool reused = false;
    for (const auto& save : saves) {
      live.insert(live.end(), save.live.begin(), save.live.end());
      stored.insert(stored.end(), save.stored.begin(), save.stored.end());
      reused = reused || save.reused;
    }
    if (stored.empty() || saves.size() < life.ranks.size()) continue;
    sort_unique(live);
    sort_unique(stored);
    for (const auto& finding : judge_request(live, stored, {})) {
      const bool lost = std::binary_search(live.begin(), live.end(), finding.key);
      findings.push_back(
          {reused ? Code::kStalePlan : judged::kKeysetAsymmetry,
           finding.key,
           std::string("the job ") + (lost ? "has it" : "no longer has it") +
               ", but the checkpoint of step " + std::to_string(saves.front().point.step.value) +
               (lost ? " does not" : " does") + (reused ? ": it was saved with an old plan" : ""),
           {}});
    }
  }
}

/// Checks that a save ended in the same way on all ranks that were alive at its end.
Findings judge_endings(const LifeRecord& life) {
  Findings findings;
  for (std::size_t i = 0;; ++i) {
    const auto saves = each_ranks(life, &RankRecord::saves, i);
    if (saves.empty()) return findings;
    const SaveEvidence* well = nullptr;
    const SaveEvidence* ill = nullptr;
    for (const auto& save : saves) {
      if (save.point.certain) well = &save;
      if (save.code) ill = &save;
    }
    if (well == nullptr || ill == nullptr) continue;
    findings.push_back({.code = judged::kVerdictDisagreement,
                        .text = "the save of step " + std::to_string(well->point.step.value) +
                                " succeeded on one rank and failed with " +
                                std::string(name_of(*ill->code)) + " on another"});
  }
}

/// Checks that every save that a job began was committed before the job exited.
Findings judge_unended(const LifeRecord& life) {
  Findings findings;
  for (const auto& rank : life.ranks) {
    if (rank.ending != Ending::kReturned) continue;
    for (const auto& save : rank.saves) {
      if (save.point.certain || save.code) continue;
      findings.push_back({judged::kCommitMissing, "",
                          "the save of step " + std::to_string(save.point.step.value) +
                              " was begun, but the job ended before it was committed",
                          GlobalRank{rank.result.rank}});
    }
  }
  return findings;
}

/// Checks that all ranks together read no more bytes than are stored. Applies only if the scenario
/// requires that each byte of payload is read by one rank for all.
void judge_reads(const std::vector<LoadEvidence>& loads, Findings& findings) {
  std::uint64_t read = 0;
  std::uint64_t allowed = 0;
  for (const auto& load : loads) {
    read += load.bytes_read;
    allowed += load.bytes_allowed;
  }
  if (allowed == 0 || read <= allowed) return;
  findings.push_back({.code = judged::kReadTwice,
                      .text = "the ranks of a load read " + std::to_string(read) +
                              " bytes of payload, but the checkpoint has " +
                              std::to_string(allowed)});
}

Findings judge_loads(const LifeRecord& life) {
  Findings findings;
  for (std::size_t i = 0;; ++i) {
    const auto loads = each_ranks(life, &RankRecord::loads, i);
    if (loads.empty()) return findings;
    judge_generation(loads, findings);
    // A rank that did not do this load may have requested other keys.
    if (loads.size() < life.ranks.size()) continue;
    judge_reads(loads, findings);
    LoadEvidence all;
    for (const auto& load : loads) {
      all.requested.insert(all.requested.end(), load.requested.begin(), load.requested.end());
      all.stored.insert(all.stored.end(), load.stored.begin(), load.stored.end());
      all.excused.insert(all.excused.end(), load.excused.begin(), load.excused.end());
    }
    if (all.stored.empty()) {
      findings.push_back(
          {.code = judged::kOracleVacuous,
           .text = "the checkpoint was loaded, but its keys could not be read afterwards"});
      continue;
    }
    sort_unique(all.requested);
    sort_unique(all.stored);
    findings.append(judge_request(all.requested, all.stored, all.excused));
  }
}

/// Reports tensors of the uninterrupted job that no rank of this life has. A single rank can't tell
/// whether another rank has them.
Findings judge_absent(const LifeRecord& life) {
  if (life.ranks.empty()) return {};
  Inventory nowhere = life.ranks.front().absent;
  for (const auto& rank : life.ranks) {
    Inventory both;
    std::set_intersection(nowhere.begin(), nowhere.end(), rank.absent.begin(), rank.absent.end(),
                          std::back_inserter(both));
    nowhere = std::move(both);
  }
  Findings findings;
  for (const auto& key : nowhere) {
    findings.push_back({.code = judged::kKeysetAsymmetry,
                        .key = key,
                        .text = "the uninterrupted job has it but no rank of this one does"});
  }
  return findings;
}

/// True if a rank died. Its peers may notice its death at different points.
bool has_dead(const LifeRecord& life) {
  return std::any_of(life.ranks.begin(), life.ranks.end(), [](const RankRecord& rank) {
    return rank.ending == Ending::kLost || rank.ending == Ending::kHung || failed_its_peers(rank);
  });
}

/// Returns the step of all saves or all loads of the life; nothing if there are several.
std::optional<std::int64_t> only_step(const LifeRecord& life, std::string_view phase) {
  std::set<std::int64_t> steps;
  for (const auto& rank : life.ranks) {
    for (const auto& save : rank.saves) {
      if (phase == "save") steps.insert(save.point.step.value);
    }
    for (const auto& load : rank.loads) {
      if (phase == "load") steps.insert(load.step);
    }
  }
  if (steps.size() != 1) return std::nullopt;
  return *steps.begin();
}

}  // namespace

bool failed_its_peers(const RankRecord& rank) {
  constexpr std::uint64_t kDeadlineNs = kCollectiveDeadlineS * 1'000'000'000;
  return std::any_of(rank.faults.begin(), rank.faults.end(), [](const sim::FaultState& fault) {
    const bool late = fault.spec.kind == sim::FaultKind::kLate && fault.spec.delay_ns > kDeadlineNs;
    return fault.fired && (late || fault.spec.kind == sim::FaultKind::kFails);
  });
}

Findings judge_life(const LifeRecord& life) {
  Findings all;
  const auto add = [&](Findings found, const std::string& phase) {
    for (auto& finding : found) {
      finding.phase = phase;
      finding.step = only_step(life, phase);
    }
    all.append(found);
  };
  add(judge_saves(life), "save");
  add(judge_plans(life), "save");
  if (!has_dead(life)) add(judge_endings(life), "save");
  add(judge_unended(life), "save");
  add(judge_loads(life), "load");
  add(judge_absent(life), "");
  return all;
}

}  // namespace reprise::driver
