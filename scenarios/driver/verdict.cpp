#include "scenarios/driver/verdict.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "scenarios/driver/life_end.hpp"
#include "scenarios/driver/life_judge.hpp"
#include "scenarios/driver/past.hpp"
#include "scenarios/driver/restart_loop.hpp"

namespace reprise::driver {
namespace {

using reports::ScenarioResult;
using reports::Verdict;

/// What is found at a save is a cause, what differs after a load or in a later step an effect; the
/// nearer a finding is to the cause, the sooner it says what to mend. Ranks that went on from
/// different checkpoints explain all else.
int distance_from_cause(const std::string& code) {
  constexpr std::array<std::string_view, 5> kCauses = {"FALSE_REPLICA", "NO_WRITER", "MULTI_WRITER",
                                                       "COVERAGE_GAP", "CHUNK_OVERLAP"};
  if (code == "MIXED_GENERATION") return -1;
  constexpr std::array<std::string_view, 3> kEffects = {"REPLICA_MISMATCH", "BIT_MISMATCH",
                                                        "TRAJECTORY_DIVERGENCE"};
  if (std::find(kCauses.begin(), kCauses.end(), code) != kCauses.end()) return 0;
  const auto effect = std::find(kEffects.begin(), kEffects.end(), code);
  return effect == kEffects.end() ? 1 : 2 + static_cast<int>(effect - kEffects.begin());
}

/// What the judges found, the cause first.
Finding difference_of(const IncarnationRecord& life) {
  Finding found;
  const auto consider = [&found](const std::string& code, const std::string& text) {
    const bool nearer = found.verdict == Verdict::kPass ||
                        distance_from_cause(code) < distance_from_cause(found.code);
    if (nearer) found = fail(code, without_code(text, code));
  };
  for (const auto& rank : life.ranks) {
    for (const auto& ruling : rank.rulings) {
      consider(ruling.code, rank_text(rank) + ": " + without_code(ruling.text, ruling.code));
    }
  }
  for (const auto& ruling : judge_life(life)) {
    std::ostringstream text;
    text << ruling;
    consider(std::string(name_of(ruling.defect)), text.str());
  }
  for (const auto& ruling : life.rulings) consider(ruling.code, ruling.text);
  if (found.verdict != Verdict::kPass) return found;
  for (const auto& rank : life.ranks) {
    if (rank.result.bit_mismatches > 0) {
      return fail("BIT_MISMATCH", rank_text(rank) + " has " +
                                      std::to_string(rank.result.bit_mismatches) +
                                      " elements with other bits");
    }
  }
  return {};
}

// --- what was expected of all lives --------------------------------------------------------------

Finding contradicted(const std::string& what, const std::string& wanted, const std::string& is) {
  return fail("VERDICT_DISAGREEMENT", what + " was to be " + wanted + " and is " + is);
}

/// Of the last life that came to one; "none" if none did. The gravest of its ranks'.
std::string diagnosis_of(std::span<const IncarnationRecord> lives) {
  constexpr std::array<std::string_view, 3> kGravest = {"persistent_error", "transient_error",
                                                        "correct_result"};
  for (auto life = lives.rbegin(); life != lives.rend(); ++life) {
    for (const auto diagnosis : kGravest) {
      for (const auto& rank : life->ranks) {
        if (rank.diagnosis == diagnosis) return rank.diagnosis;
      }
    }
  }
  return "none";
}

/// Of all lives; all ranks plan again together.
std::uint64_t replans_of(std::span<const IncarnationRecord> lives) {
  std::uint64_t replans = 0;
  for (const auto& life : lives) {
    std::uint64_t most = 0;
    for (const auto& rank : life.ranks) most = std::max(most, rank.replans);
    replans += most;
  }
  return replans;
}

std::vector<std::int64_t> skipped_by(const IncarnationRecord& life) {
  std::set<std::int64_t> skipped;
  for (const auto& rank : life.ranks) skipped.insert(rank.skipped.begin(), rank.skipped.end());
  return {skipped.begin(), skipped.end()};
}

std::string text_of(const std::vector<std::int64_t>& numbers) {
  return numbers.empty() ? "none" : join(numbers, ", ");
}

Finding expectations_of(const Expectation& expect, std::span<const IncarnationRecord> lives) {
  const IncarnationRecord& last = lives.back();
  if (expect.loaded_step) {
    const auto loaded = last.ranks.front().result.loaded_step;
    if (loaded != *expect.loaded_step) {
      return contradicted("the loaded step", std::to_string(*expect.loaded_step),
                          std::to_string(loaded));
    }
  }
  if (expect.diagnosis && diagnosis_of(lives) != *expect.diagnosis) {
    return contradicted("the diagnosis", *expect.diagnosis, diagnosis_of(lives));
  }
  if (expect.replans && replans_of(lives) != *expect.replans) {
    return contradicted("the number of plans made again", std::to_string(*expect.replans),
                        std::to_string(replans_of(lives)));
  }
  if (const auto skipped = skipped_by(last); skipped != expect.skipped.value_or(skipped)) {
    return contradicted("the list of skipped iterations", text_of(*expect.skipped),
                        text_of(skipped));
  }
  for (const auto& text : expect.log) {
    const bool logged = std::any_of(lives.begin(), lives.end(),
                                    [&](const auto& life) { return is_logged(life, text); });
    if (!logged) return fail("VERDICT_DISAGREEMENT", "no log says: " + text);
  }
  return {};
}

// --- did the faults fire? ------------------------------------------------------------------------

Finding vacuous(std::string reason) {
  return {Verdict::kInconclusive, "ORACLE_VACUOUS", std::move(reason)};
}

/// What became of each fault that the life's plan has, with whether it was to fire.
std::vector<std::pair<Fires, const sim::FaultState*>> planned_faults(
    const IncarnationPlan& plan, const IncarnationRecord& life) {
  std::map<std::int32_t, std::vector<Fires>> by_rank;
  for (const auto& action : plan.actions) {
    if (const auto* fault = std::get_if<FaultAction>(&action)) {
      by_rank[fault->rank].push_back(fault->fires);
    } else if (const auto* bad = std::get_if<BadResultAction>(&action)) {
      for (const auto rank : bad->ranks) by_rank[rank].push_back(Fires::kYes);
    }
  }
  std::vector<std::pair<Fires, const sim::FaultState*>> faults;
  for (const auto& rank : life.ranks) {
    const auto& wanted = by_rank[rank.result.rank];
    // Faults of earlier lives stand before the life's own.
    const std::size_t begin = rank.faults.size() - std::min(wanted.size(), rank.faults.size());
    for (std::size_t i = begin; i < rank.faults.size(); ++i) {
      faults.emplace_back(wanted[i - begin], &rank.faults[i]);
    }
  }
  return faults;
}

Finding unfired_of(const Scenario& scenario, std::span<const IncarnationRecord> lives) {
  for (std::size_t i = 0; i < lives.size(); ++i) {
    for (const auto& [fires, fault] : planned_faults(scenario.incarnations[i], lives[i])) {
      const std::string what =
          "incarnation " + std::to_string(i) + ": the " + sim::to_string(fault->spec);
      if (fires == Fires::kNo && fault->fired) {
        return fail("VERDICT_DISAGREEMENT", what + " was not to fire and did: " + fault->where);
      }
      if (fires == Fires::kYes && !fault->fired) {
        return vacuous(what + " never fired; it was " +
                       (fault->reached ? "reached"
                        : fault->armed ? "armed"
                                       : "not even armed"));
      }
    }
  }
  return {};
}

/// All ranks refused what they had begun to read.
bool is_poisoned(const IncarnationRecord& life) {
  return std::all_of(life.ranks.begin(), life.ranks.end(), [](const RankRecord& rank) {
    return rank.ending == Ending::kFailed && rank.read_began;
  });
}

/// Every life that began with a load has something to show, on every rank.
Finding vacuity_of(std::span<const IncarnationRecord> lives, const Expectation& expect) {
  for (std::size_t life = 1; life < lives.size(); ++life) {
    const bool cut_short = has_planned_end(lives[life]) || is_poisoned(lives[life]);
    const std::string where = "incarnation " + std::to_string(life) + ", ";
    for (const auto& rank : lives[life].ranks) {
      if (cut_short && rank.loads.empty()) continue;  // before anything could be compared
      if (rank.result.owns && rank.result.elements == 0) {
        return vacuous(where + rank_text(rank) + " owns state and compared nothing");
      }
      if (!rank.result.owns && expect.every_rank_owns) {
        return vacuous(where + rank_text(rank) +
                       " holds nothing; where that is meant, expect 'ranks_own: some'");
      }
    }
  }
  std::uint64_t elements = 0;
  const bool shown = !is_poisoned(lives.back());
  for (const auto& life : shown ? lives.last(1) : lives) {
    for (const auto& rank : life.ranks) elements += rank.result.elements;
  }
  const auto least = std::max<std::uint64_t>(expect.elements_least, 1);
  if (elements >= least) return {};
  return vacuous(std::to_string(elements) + " elements were compared, " + std::to_string(least) +
                 " is the least");
}

Finding finding_of(const Scenario& scenario, std::span<const IncarnationRecord> lives) {
  const IncarnationRecord& last = lives.back();
  if (!last.launch_error.empty()) return {Verdict::kInconclusive, "IO", last.launch_error};
  for (std::size_t i = 0; i < lives.size(); ++i) {
    // A judge's word comes first: it says why, where an error mostly says that.
    const Finding judged = difference_of(lives[i]);
    const Finding ended = unplanned_end_of(scenario, i, lives[i]);
    const bool by_end = judged.verdict == Verdict::kPass ||
                        (ended.verdict != Verdict::kPass &&
                         distance_from_cause(ended.code) < distance_from_cause(judged.code));
    const Finding& found = by_end ? ended : judged;
    if (found.verdict != Verdict::kPass) return found;
  }
  if (lives.size() < scenario.incarnations.size()) {
    return {Verdict::kInconclusive, "ORACLE_VACUOUS", "not all incarnations were run"};
  }
  for (const Finding& found : {restart_loop_of(lives), expectations_of(scenario.expect, lives),
                               unfired_of(scenario, lives), vacuity_of(lives, scenario.expect)}) {
    if (found.verdict != Verdict::kPass) return found;
  }
  return {};
}

/// Of everything that was found, with counts.
std::map<std::string, std::uint64_t> codes_of(std::span<const IncarnationRecord> lives) {
  std::map<std::string, std::uint64_t> codes;
  for (const auto& life : lives) {
    for (const auto& rank : life.ranks) {
      for (const auto& ruling : rank.rulings) ++codes[ruling.code];
      if (!rank.code.empty()) ++codes[rank.code];
    }
    for (const auto& ruling : judge_life(life)) ++codes[std::string(name_of(ruling.defect))];
    for (const auto& ruling : life.rulings) ++codes[ruling.code];
  }
  return codes;
}

/// "; also WRONG_OWNER x 3, STALE_DERIVED x 1": what else came up behind the first finding.
std::string others_text(const std::map<std::string, std::uint64_t>& codes,
                        const std::string& first) {
  std::string text;
  for (const auto& [code, count] : codes) {
    if (code == first || code == name_of(Code::kPeerFailed)) continue;
    text += (text.empty() ? "; also " : ", ") + code + " x " + std::to_string(count);
  }
  return text;
}

std::string difference_text(const reports::FirstDifference& first) {
  std::string index;
  for (const auto i : first.index) index += (index.empty() ? "" : ", ") + std::to_string(i);
  return "; first difference: " + first.key + "[" + index + "] saved " + first.saved + ", loaded " +
         first.loaded + ", which is " + first.comes_from;
}

/// What the job's launcher would see.
int exit_code_of(const IncarnationRecord& life) {
  const bool returned = std::all_of(life.ranks.begin(), life.ranks.end(), [](const auto& rank) {
    return rank.ending == Ending::kReturned;
  });
  return returned ? life.ranks.front().exit_code : 1;
}

void add_life(const IncarnationRecord& life, ScenarioResult& result) {
  result.layouts.push_back(life.layout);
  if (life.ranks.empty()) return;
  const RankRecord& first = life.ranks.front();
  result.world = std::max({result.world, static_cast<std::int32_t>(life.ranks.size()), life.world});
  result.incarnations.push_back({.layout = life.layout,
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
    if (!result.first_difference) result.first_difference = rank.first_difference;
  }
}

bool saves_beside_training(const Scenario& scenario, std::size_t number) {
  const auto& actions = scenario.incarnations[number].actions;
  return scenario.checkpoint.async ||
         std::any_of(actions.begin(), actions.end(), [](const Action& action) {
           const auto* save = std::get_if<SaveAction>(&action);
           return save != nullptr && save->async.value_or(false);
         });
}

/// True if a life began after a save beside training that had not come to its end: it may have gone
/// on from that one or from what stood before, as far as the background had come. Other saves stand
/// still where a fault strikes.
bool left_to_time(const Scenario& scenario, std::span<const IncarnationRecord> lives) {
  Past past;
  for (const auto& life : lives.first(lives.size() - 1)) {
    driver::add_life(life, past);
    if (past.saves.empty() || past.saves.back().certain) continue;
    if (saves_beside_training(scenario, past.saves.back().incarnation)) return true;
  }
  return false;
}

/// By rank; those that are no members of the job hold nothing.
std::vector<reports::RankResult> all_ranks_of(const IncarnationRecord& life) {
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

bool may_go_on(const Scenario& scenario, std::size_t number, const IncarnationRecord& life) {
  return life.launch_error.empty() &&
         unplanned_end_of(scenario, number, life).verdict == Verdict::kPass;
}

bool broke_down(std::span<const IncarnationRecord> lives) {
  return std::any_of(lives.begin(), lives.end(), [](const IncarnationRecord& life) {
    return std::any_of(life.ranks.begin(), life.ranks.end(), [](const RankRecord& rank) {
      return rank.ending == Ending::kDefect || rank.code == name_of(Code::kDeadline);
    });
  });
}

ScenarioResult judge(const Scenario& scenario, std::span<const IncarnationRecord> lives) {
  ScenarioResult result;
  result.name = scenario.name;
  result.file = scenario.file;
  result.proves = scenario.proves;
  Hasher events;
  bool hashed = !lives.empty();
  for (const auto& life : lives) {
    add_life(life, result);
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
    for (const auto& [fires, fault] : planned_faults(scenario.incarnations[i], lives[i])) {
      result.faults.push_back({std::string(sim::name_of(fault->spec.kind)),
                               fault->spec.place.rank.value, fault->armed, fault->reached,
                               fault->fired, fires == Fires::kYes});
    }
  }
  result.ranks = all_ranks_of(lives.back());
  result.left_to_time = left_to_time(scenario, lives);
  result.replans = replans_of(lives);
  if (const auto diagnosis = diagnosis_of(lives); diagnosis != "none") {
    result.diagnosis = diagnosis;
  }
  const Finding found = finding_of(scenario, lives);
  result.verdict = found.verdict;
  result.code = found.code;
  result.reason = found.reason;
  if (result.verdict != Verdict::kFail) return result;
  result.reason += others_text(codes_of(lives), result.code);
  if (result.first_difference) result.reason += difference_text(*result.first_difference);
  return result;
}

}  // namespace reprise::driver
