#include "scenarios/driver/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"

namespace reprise::driver {
namespace {

using reports::ScenarioResult;
using reports::Verdict;

struct Finding {
  Verdict verdict = Verdict::kPass;
  std::string code;
  std::string reason;
};

Finding fail(std::string code, std::string reason) {
  return {Verdict::kFail, std::move(code), std::move(reason)};
}

/// Messages of errors and rulings begin with their code, which the reason already has.
std::string without_code(const std::string& text, const std::string& code) {
  const std::string lead = code + ": ";
  return text.starts_with(lead) ? text.substr(lead.size()) : text;
}

std::string rank_text(const RankRecord& rank) { return "rank " + std::to_string(rank.result.rank); }

/// How the worst ended rank ended. Our own mistakes and hangs come before errors, which all ranks
/// share.
Finding ending_of(const IncarnationRecord& life) {
  for (const Ending ending : {Ending::kDefect, Ending::kHung, Ending::kLost, Ending::kFailed}) {
    for (const auto& rank : life.ranks) {
      if (rank.ending != ending) continue;
      return fail(rank.code, rank_text(rank) + ": " + without_code(rank.message, rank.code));
    }
  }
  return {};
}

Finding difference_of(const IncarnationRecord& life) {
  for (const auto& rank : life.ranks) {
    if (rank.rulings.empty()) continue;
    const RulingText& first = rank.rulings[0];
    return fail(first.code, rank_text(rank) + ": " + without_code(first.text, first.code));
  }
  for (const auto& rank : life.ranks) {
    if (rank.result.bit_mismatches > 0) {
      return fail("BIT_MISMATCH", rank_text(rank) + " has " +
                                      std::to_string(rank.result.bit_mismatches) +
                                      " elements with other bits");
    }
  }
  return {};
}

/// Refused as expected: every rank failed, all with that code.
Finding refusal_of(const IncarnationRecord& life, const std::string& code) {
  for (const auto& rank : life.ranks) {
    if (rank.ending == Ending::kFailed && rank.code == code) continue;
    const std::string what =
        rank.ending == Ending::kReturned ? "went on" : "ended by " + rank.message;
    return fail("VERDICT_DISAGREEMENT",
                rank_text(rank) + " was to refuse with " + code + " and " + what);
  }
  return {};
}

Finding vacuity_of(const IncarnationRecord& last) {
  for (const auto& rank : last.ranks) {
    if (rank.result.owns && rank.result.elements == 0) {
      return {Verdict::kInconclusive, "ORACLE_VACUOUS",
              rank_text(rank) + " owns state and compared nothing"};
    }
  }
  return {};
}

Finding finding_of(const Scenario& scenario, std::span<const IncarnationRecord> lives) {
  const IncarnationRecord& last = lives.back();
  if (!last.launch_error.empty()) return {Verdict::kInconclusive, "IO", last.launch_error};
  const bool refuses = scenario.expect.refusal.has_value();  // in the last incarnation
  for (const auto& life : refuses ? lives.first(lives.size() - 1) : lives) {
    // A judge's word comes first: it says why, where an error only says that.
    if (Finding found = difference_of(life); found.verdict != Verdict::kPass) return found;
    if (Finding found = ending_of(life); found.verdict != Verdict::kPass) return found;
  }
  if (lives.size() < scenario.incarnations.size()) {
    return refuses
               ? fail(last.ranks.front().code,
                      "refused before the last incarnation: " + last.ranks.front().message)
               : Finding{Verdict::kInconclusive, "ORACLE_VACUOUS", "not all incarnations were run"};
  }
  if (refuses) return refusal_of(last, *scenario.expect.refusal);
  return vacuity_of(last);
}

int exit_code_of(const IncarnationRecord& life) {
  const bool returned = std::all_of(life.ranks.begin(), life.ranks.end(), [](const auto& rank) {
    return rank.ending == Ending::kReturned;
  });
  return returned ? 0 : 1;
}

void add_life(const IncarnationRecord& life, ScenarioResult& result) {
  result.layouts.push_back(life.layout);
  if (life.ranks.empty()) return;
  const RankRecord& first = life.ranks.front();
  result.world = std::max(result.world, static_cast<std::int32_t>(life.ranks.size()));
  result.incarnations.push_back({.layout = life.layout,
                                 .exit_code = exit_code_of(life),
                                 .first_step = first.first_step,
                                 .last_step = first.last_step});
  result.trajectory.insert(result.trajectory.end(), first.trajectory.begin(),
                           first.trajectory.end());
  result.content_digest = first.content_digest;
  for (const auto& rank : life.ranks) {
    result.peak_bytes.stage = std::max(result.peak_bytes.stage, rank.peak_bytes.stage);
    result.peak_bytes.load = std::max(result.peak_bytes.load, rank.peak_bytes.load);
    if (!result.first_difference) result.first_difference = rank.first_difference;
  }
}

}  // namespace

bool went_well(const IncarnationRecord& life) {
  return life.launch_error.empty() && ending_of(life).verdict == Verdict::kPass;
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
  for (const auto& rank : lives.back().ranks) result.ranks.push_back(rank.result);
  const Finding found = finding_of(scenario, lives);
  result.verdict = found.verdict;
  result.code = found.code;
  result.reason = found.reason;
  if (result.verdict == Verdict::kFail && result.first_difference) {
    const auto& first = *result.first_difference;
    std::string index;
    for (const auto i : first.index) index += (index.empty() ? "" : ", ") + std::to_string(i);
    result.reason += "; first difference: " + first.key + "[" + index + "] saved " + first.saved +
                     ", loaded " + first.loaded + ", which is " + first.comes_from;
  }
  return result;
}

}  // namespace reprise::driver
