#include "driver/judges/verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "driver/judges/failure.hpp"
#include "driver/judges/generations.hpp"
#include "driver/judges/life_end.hpp"
#include "driver/judges/life_judge.hpp"
#include "driver/judges/restart_loop.hpp"
#include "driver/language/scenario_faults.hpp"
#include "driver/record/past.hpp"
#include "properties/finding_code.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using reports::ScenarioResult;
using reports::Verdict;
using sim::RerunDiagnosis;

/// Returns how far a finding with this code is from the cause; the verdict names the code with the
/// smallest distance. A finding at a save is a cause. A difference after a load or in a later step
/// is an effect. MIXED_GENERATION (ranks loaded different checkpoints) has the smallest distance,
/// because it explains all other findings. PROTOCOL is next: a step out of order does no harm by
/// itself, and what else is found follows from it.
int distance_from_cause(FindingCode code) {
  static const std::map<FindingCode, int> kDistances = {
      {judged::kMixedGeneration, -2}, {judged::kProtocol, -1},
      {judged::kFalseReplica, 0},     {Code::kNoWriter, 0},
      {Code::kMultiWriter, 0},        {Code::kCoverageGap, 0},
      {Code::kChunkOverlap, 0},       {judged::kReplicaMismatch, 2},
      {judged::kBitMismatch, 3},      {judged::kTrajectoryDivergence, 4},
  };
  const auto at = kDistances.find(code);
  return at == kDistances.end() ? 1 : at->second;
}

/// True if `a` is nearer to the cause than `b`, or equally near and of an earlier step.
bool is_nearer(const Finding& a, const Finding& b) {
  const int distance = distance_from_cause(a.code) - distance_from_cause(b.code);
  if (distance != 0) return distance < 0;
  return a.step && b.step && *a.step < *b.step;
}

/// Returns the judges' finding that is nearest to the cause. Of several that are equally near, it
/// is the one of the earliest step, and then the first.
std::optional<Finding> difference_of(const LifeRecord& life) {
  std::optional<Finding> found;
  const auto consider = [&found](const Finding& finding, const std::string& lead,
                                 std::optional<GlobalRank> rank) {
    if (found && !is_nearer(finding, *found)) return;
    found = finding;
    found->text = lead + text_with_place(finding);
    found->rank = rank;
  };
  for (const auto& rank : life.ranks) {
    for (const auto& finding : rank.findings) {
      consider(finding, rank_text(rank) + ": ", GlobalRank{rank.result.rank});
    }
  }
  for (const auto& finding : findings_on_all(life)) consider(finding, "", finding.rank);
  if (found) return found;
  for (const auto& rank : life.ranks) {
    if (rank.result.bit_mismatches > 0) {
      return fail_at(rank, judged::kBitMismatch,
                     rank_text(rank) + " has " + std::to_string(rank.result.bit_mismatches) +
                         " elements with different bits");
    }
  }
  return {};
}

// --- expectations for all lives ------------------------------------------------------------------

std::optional<Finding> contradicted(const std::string& what, const std::string& wanted,
                                    const std::string& is, SourceLine line = SourceLine::here()) {
  return judged::fail(judged::kVerdictDisagreement, what + " should be " + wanted + " and is " + is,
                      line);
}

/// Returns the gravest diagnosis of the last life that has one; kNone if none has.
RerunDiagnosis diagnosis_of(std::span<const LifeRecord> lives) {
  constexpr std::array kGravest = {RerunDiagnosis::kPersistentError,
                                   RerunDiagnosis::kTransientError, RerunDiagnosis::kCorrectResult};
  for (auto life = lives.rbegin(); life != lives.rend(); ++life) {
    for (const auto diagnosis : kGravest) {
      for (const auto& rank : life->ranks) {
        if (rank.diagnosis == diagnosis) return diagnosis;
      }
    }
  }
  return RerunDiagnosis::kNone;
}

/// Returns how often plans were recomputed, summed over all lives. The ranks of a life recompute
/// their plans together, so the life's count is the largest count of its ranks.
std::uint64_t replans_of(std::span<const LifeRecord> lives) {
  std::uint64_t replans = 0;
  for (const auto& life : lives) {
    std::uint64_t most = 0;
    for (const auto& rank : life.ranks) most = std::max(most, rank.replans);
    replans += most;
  }
  return replans;
}

std::vector<std::int64_t> skipped_by(const LifeRecord& life) {
  std::set<std::int64_t> skipped;
  for (const auto& rank : life.ranks) skipped.insert(rank.skipped.begin(), rank.skipped.end());
  return {skipped.begin(), skipped.end()};
}

std::string text_of(const std::vector<std::int64_t>& numbers) {
  return numbers.empty() ? "none" : join(numbers, ", ");
}

/// True if `rate` equals `written` up to the rounding of numbers in scenario files.
bool is_as_written(double rate, double written) {
  constexpr double kWritten = 1e-6;
  return std::abs(rate - written) <= kWritten * std::abs(written);
}

std::string text_of(double rate) {
  std::ostringstream text;
  text << rate;
  return text.str();
}

/// Compares learning rates with the expected ones. A step that no life trained has no rate.
std::optional<Finding> rates_of(const Expectation& expect, std::span<const LifeRecord> lives) {
  std::map<std::int64_t, double> taken;
  for (const auto& life : lives) {
    for (const auto& point : life.ranks.front().trajectory) taken[point.step] = point.lr;
  }
  for (const auto& [step, rate] : expect.rates) {
    const std::string what = "the learning rate of step " + std::to_string(step);
    const auto found = taken.find(step);
    if (found == taken.end()) return contradicted(what, text_of(rate), "none: no rank took it");
    if (!is_as_written(found->second, rate)) {
      return contradicted(what, text_of(rate), text_of(found->second));
    }
  }
  return {};
}

std::optional<Finding> expectations_of(const Expectation& expect,
                                       std::span<const LifeRecord> lives) {
  const LifeRecord& last = lives.back();
  if (expect.loaded_step) {
    const auto loaded = last.ranks.front().result.loaded_step;
    if (loaded != *expect.loaded_step) {
      return contradicted("the loaded step", std::to_string(*expect.loaded_step),
                          std::to_string(loaded));
    }
  }
  if (expect.diagnosis && diagnosis_of(lives) != *expect.diagnosis) {
    return contradicted("the diagnosis", std::string(name_of(*expect.diagnosis)),
                        std::string(name_of(diagnosis_of(lives))));
  }
  if (expect.replans && replans_of(lives) != *expect.replans) {
    return contradicted("the number of replans", std::to_string(*expect.replans),
                        std::to_string(replans_of(lives)));
  }
  if (const auto skipped = skipped_by(last); skipped != expect.skipped.value_or(skipped)) {
    return contradicted("the list of skipped iterations", text_of(*expect.skipped),
                        text_of(skipped));
  }
  if (auto rates = rates_of(expect, lives)) return rates;
  for (const auto& text : expect.log) {
    const bool logged = std::any_of(lives.begin(), lives.end(),
                                    [&](const auto& life) { return is_logged(life, text); });
    if (!logged) return judged::fail(judged::kVerdictDisagreement, "no log says: " + text);
  }
  for (const auto& text : expect.silent) {
    const bool logged = std::any_of(lives.begin(), lives.end(),
                                    [&](const auto& life) { return is_logged(life, text); });
    if (logged)
      return judged::fail(judged::kVerdictDisagreement,
                          "a log must not say this, but it does: " + text);
  }
  const auto empty = std::count_if(last.ranks.begin(), last.ranks.end(),
                                   [](const auto& rank) { return rank.bound_bytes.empty > 0; });
  if (empty != expect.empty_ranks.value_or(empty)) {
    return contradicted("the number of ranks that hold no part of a tensor",
                        std::to_string(*expect.empty_ranks), std::to_string(empty));
  }
  return {};
}

// --- did the faults fire? ------------------------------------------------------------------------

std::optional<Finding> vacuous(std::string text, SourceLine line = SourceLine::here()) {
  return judged::vacuous(judged::kOracleVacuous, std::move(text), line);
}

/// The finding concerns this rank of this life.
std::optional<Finding> located(std::size_t life, std::int32_t rank, std::optional<Finding> found) {
  if (!found) return found;
  found->life = life;
  found->rank = GlobalRank{rank};
  return found;
}

/// A planned fault, and how far it got.
struct PlannedFault {
  sim::FaultSpec spec;
  Fires fires = Fires::kYes;
  std::optional<sim::FaultState> state = {};  ///< empty if no rank's record has the fault
};

/// Lists the faults of the plan, even those that are missing from the records.
std::vector<PlannedFault> planned_faults(const LifePlan& plan, const LifeRecord& life) {
  std::vector<PlannedFault> faults;
  // For each rank, the number of this life's faults that are not yet matched with the rank's
  // record.
  std::map<std::int32_t, std::size_t> left;
  for (const auto& action : plan.actions) {
    const std::size_t before = faults.size();
    if (const auto* fault = std::get_if<FaultAction>(&action)) {
      faults.push_back({.spec = spec_of(*fault), .fires = fault->fires});
    } else if (const auto* bad = std::get_if<BadResultAction>(&action)) {
      for (auto& spec : specs_of(*bad)) faults.push_back({.spec = std::move(spec)});
    }
    for (std::size_t i = before; i < faults.size(); ++i) ++left[faults[i].spec.place.rank.value];
  }
  for (auto& fault : faults) {
    // A rank's record lists faults of earlier lives first. The faults of this life are therefore
    // counted from the end.
    const std::size_t from_end = left[fault.spec.place.rank.value]--;
    const auto record = std::find_if(life.ranks.begin(), life.ranks.end(), [&](const auto& rank) {
      return rank.result.rank == fault.spec.place.rank.value;
    });
    if (record == life.ranks.end() || record->faults.size() < from_end) continue;
    fault.state = record->faults[record->faults.size() - from_end];
  }
  return faults;
}

std::optional<Finding> unfired_of(const Scenario& scenario, std::span<const LifeRecord> lives) {
  for (std::size_t i = 0; i < lives.size(); ++i) {
    for (const auto& [spec, fires, state] : planned_faults(scenario.lives[i], lives[i])) {
      const std::string what = "life " + std::to_string(i) + ": the " + sim::to_string(spec);
      const std::int32_t rank = spec.place.rank.value;
      if (!state) {
        return located(i, rank, vacuous(what + " was planned, but no rank reports it as armed"));
      }
      if (fires == Fires::kNo && state->fired) {
        return located(i, rank,
                       judged::fail(judged::kVerdictDisagreement,
                                    what + " should not have fired, but it did: " + state->where));
      }
      if (fires == Fires::kYes && !state->fired) {
        return located(i, rank,
                       vacuous(what + " never fired; it was " +
                               (state->reached ? "reached"
                                : state->armed ? "armed"
                                               : "not even armed")));
      }
    }
  }
  return {};
}

/// Requires that every life that began with a load compared something on every rank.
std::optional<Finding> vacuity_of(std::span<const LifeRecord> lives, const Expectation& expect) {
  for (std::size_t life = 1; life < lives.size(); ++life) {
    const bool cut_short = has_planned_end(lives[life]);
    const std::string where = "life " + std::to_string(life) + ", ";
    for (const auto& rank : lives[life].ranks) {
      if (cut_short && rank.loads.empty()) continue;  // ended before anything was compared
      if (rank.result.owns && rank.result.elements == 0) {
        return located(life, rank.result.rank,
                       vacuous(where + rank_text(rank) + " owns state but compared nothing"));
      }
      if (!rank.result.owns && expect.every_rank_owns) {
        return located(life, rank.result.rank,
                       vacuous(where + rank_text(rank) +
                               " holds nothing; if that is intended, expect 'ranks_own: some'"));
      }
    }
  }
  std::uint64_t elements = 0;
  for (const auto& rank : lives.back().ranks) elements += rank.result.elements;
  const auto least = std::max<std::uint64_t>(expect.elements_least, 1);
  if (elements >= least) return {};
  return vacuous(with_commas(elements) + " elements were compared, " + with_commas(least) +
                 " is the minimum");
}

/// A power cut that takes nothing shows nothing: perhaps all is synced too early, or the simulated
/// store keeps what it should lose.
std::optional<Finding> harmless_cut_of(const Scenario& scenario,
                                       std::span<const LifeRecord> lives) {
  const bool took =
      std::any_of(lives.begin(), lives.end(), [](const auto& life) { return life.power_cut_took; });
  if (!is_power_cut_planned(scenario) || took) return {};
  return vacuous("the planned power failure lost no byte and no name in any life");
}

std::optional<Finding> finding_of(const Scenario& scenario, std::span<const LifeRecord> lives) {
  const LifeRecord& last = lives.back();
  if (!last.launch_error.empty()) return judged::vacuous(Code::kIo, last.launch_error);
  for (std::size_t i = 0; i < lives.size(); ++i) {
    // Prefer a judge's finding, because it usually gives a cause. An error usually gives only an
    // effect.
    auto found = difference_of(lives[i]);
    const auto ended = unplanned_end_of(scenario, i, lives[i]);
    const bool by_end =
        ended && (!found || distance_from_cause(ended->code) < distance_from_cause(found->code));
    if (by_end) found = ended;
    if (!found) continue;
    found->life = i;
    return found;
  }
  if (lives.size() < scenario.lives.size()) {
    return vacuous("not all lives were run");
  }
  for (const auto& found : {restart_loop_of(lives), expectations_of(scenario.expect, lives),
                            unfired_of(scenario, lives), harmless_cut_of(scenario, lives),
                            vacuity_of(lives, scenario.expect)}) {
    if (found) return found;
  }
  return {};
}

/// Returns the codes other than `first` as text: "; also WRONG_OWNER x 3, STALE_DERIVED x 1".
std::string others_text(const std::map<std::string, std::uint64_t>& codes,
                        const std::string& first) {
  std::string text;
  for (const auto& [code, count] : codes) {
    if (code == first || code == name_of(Code::kPeerFailed)) continue;
    text += (text.empty() ? "; also " : ", ") + code + " x " + std::to_string(count);
  }
  return text;
}

/// Returns the first difference that the finding's rank recorded. If that rank recorded none,
/// returns one of another rank of the same life. If no rank of that life recorded any, returns one
/// of another life.
FoundDifference first_difference_of(std::span<const LifeRecord> lives,
                                    const std::optional<Finding>& found) {
  FoundDifference nearest;
  int distance = 3;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    for (const auto& rank : lives[i].ranks) {
      if (!rank.first_difference) continue;
      const bool same_life = found && found->life == i;
      const bool same_rank = same_life && found->rank == GlobalRank{rank.result.rank};
      const int own = same_rank ? 0 : same_life ? 1 : 2;
      if (own >= distance) continue;
      distance = own;
      nearest = {i, rank.first_difference};
    }
  }
  return nearest;
}

std::string difference_text(const reports::FirstDifference& first) {
  return "; first difference, on rank " + std::to_string(first.rank) + ": " + values_text(first);
}

/// Returns the exit code that the job's launcher would see.
int exit_code_of(const LifeRecord& life) {
  const bool returned = std::all_of(life.ranks.begin(), life.ranks.end(), [](const auto& rank) {
    return rank.ending == Ending::kReturned;
  });
  return returned ? life.ranks.front().exit_code : 1;
}

void add_life(const LifeRecord& life, const LifeEnd& end, ScenarioResult& result) {
  result.layouts.push_back(life.layout);
  if (life.ranks.empty()) return;
  const RankRecord& first = life.ranks.front();
  result.world = std::max({result.world, static_cast<std::int32_t>(life.ranks.size()), life.world});
  result.lives.push_back({.layout = life.layout,
                          .outcome = end.outcome,
                          .code = end.code ? std::string(name_of(*end.code)) : "",
                          .exit_code = exit_code_of(life),
                          .first_step = first.first_step,
                          .last_step = first.last_step});
  result.trajectory.insert(result.trajectory.end(), first.trajectory.begin(),
                           first.trajectory.end());
  result.content_digest = first.content_digest;
  auto& bound = result.bound_bytes ? *result.bound_bytes : result.bound_bytes.emplace();
  for (const auto& rank : life.ranks) {
    result.peak_bytes.snapshot = std::max(result.peak_bytes.snapshot, rank.peak_bytes.snapshot);
    result.peak_bytes.stage = std::max(result.peak_bytes.stage, rank.peak_bytes.stage);
    result.peak_bytes.load = std::max(result.peak_bytes.load, rank.peak_bytes.load);
    bound.stage = std::max(bound.stage, rank.bound_bytes.stage);
    bound.load = std::max(bound.load, rank.bound_bytes.load);
    result.peak_bytes.empty = std::max(result.peak_bytes.empty, rank.peak_bytes.empty);
    bound.empty = std::max(bound.empty, rank.bound_bytes.empty);
  }
}

bool saves_beside_training(const Scenario& scenario, std::size_t number) {
  const auto& actions = scenario.lives[number].actions;
  return scenario.checkpoint.async ||
         std::any_of(actions.begin(), actions.end(), [](const Action& action) {
           const auto* save = std::get_if<SaveAction>(&action);
           return save != nullptr && save->async.value_or(false);
         });
}

/// True if timing decides which checkpoint a life loads. This happens if the previous life ended
/// during a save that ran in parallel with training: whether the checkpoint exists then depends on
/// how far the background work got. A save that blocks training always stops at the fault itself.
bool left_to_time(const Scenario& scenario, std::span<const LifeRecord> lives) {
  Past past;
  for (const auto& life : lives.first(lives.size() - 1)) {
    driver::add_life(life, past);
    if (past.saves.empty() || past.saves.back().certain) continue;
    if (saves_beside_training(scenario, past.saves.back().life)) return true;
  }
  return false;
}

/// Returns results by rank. Ranks that are not members of the job have empty results.
std::vector<reports::RankResult> all_ranks_of(const LifeRecord& life) {
  std::map<std::int32_t, reports::RankResult> ranks;
  for (std::int32_t rank = 0; rank < life.world; ++rank) {
    ranks[rank].rank = rank;
    ranks[rank].owns = false;
  }
  for (const auto& rank : life.ranks) ranks[rank.result.rank] = rank.result;
  std::vector<reports::RankResult> all;
  for (auto& [number, rank] : ranks) all.push_back(std::move(rank));
  return all;
}

}  // namespace

std::map<std::string, std::uint64_t> codes_of(std::span<const LifeRecord> lives) {
  std::map<std::string, std::uint64_t> codes;
  for (const auto& life : lives) {
    for (const auto& rank : life.ranks) {
      for (const auto& finding : rank.findings) ++codes[std::string(name_of(finding.code))];
      if (rank.code) ++codes[std::string(name_of(*rank.code))];
    }
    for (const auto& finding : judge_life(life)) ++codes[std::string(name_of(finding.code))];
    for (const auto& finding : life.findings) ++codes[std::string(name_of(finding.code))];
  }
  return codes;
}

bool may_go_on(const Scenario& scenario, std::size_t number, const LifeRecord& life) {
  return life.launch_error.empty() && !unplanned_end_of(scenario, number, life);
}

bool broke_down(std::span<const LifeRecord> lives) {
  return std::any_of(lives.begin(), lives.end(), [](const LifeRecord& life) {
    return std::any_of(life.ranks.begin(), life.ranks.end(), [](const RankRecord& rank) {
      return rank.ending == Ending::kDefect || rank.code == Code::kDeadline;
    });
  });
}

ScenarioResult judge(const Scenario& scenario, std::span<const LifeRecord> lives) {
  ScenarioResult result;
  result.name = scenario.name;
  result.file = scenario.file;
  result.proves = scenario.proves;
  Hasher events;
  bool hashed = !lives.empty();
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const LifeRecord& life = lives[i];
    add_life(life, end_of(scenario, i, life), result);
    hashed = hashed && !life.event_hash.empty();
    events.text(life.event_hash);
  }
  if (hashed) result.event_hash = hex(events.digest());
  if (lives.empty()) {
    result.verdict = Verdict::kInconclusive;
    result.reason = "nothing was run";
    return result;
  }
  for (std::size_t i = 0; i < lives.size(); ++i) {
    for (const auto& fault : planned_faults(scenario.lives[i], lives[i])) {
      const sim::FaultState came = fault.state.value_or(sim::FaultState{});
      result.faults.push_back({std::string(sim::name_of(fault.spec.kind)),
                               fault.spec.place.rank.value, came.armed, came.reached, came.fired,
                               fault.fires == Fires::kYes});
    }
  }
  result.ranks = all_ranks_of(lives.back());
  result.left_to_time = left_to_time(scenario, lives);
  result.generations = generations_of(lives);
  result.replans = replans_of(lives);
  if (const auto diagnosis = diagnosis_of(lives); diagnosis != RerunDiagnosis::kNone) {
    result.diagnosis = name_of(diagnosis);
  }
  const auto found = finding_of(scenario, lives);
  result.verdict = verdict_of(found);
  const FoundDifference first = first_difference_of(lives, found);
  result.first_difference = first.difference;
  if (found) {
    result.code = name_of(found->code);
    result.reason = found->text;
    result.failure = failure_of(scenario, lives, *found, first);
  }
  if (result.verdict != Verdict::kFail) return result;
  result.reason += others_text(codes_of(lives), result.code);
  if (result.first_difference) result.reason += difference_text(*result.first_difference);
  return result;
}

}  // namespace reprise::driver
