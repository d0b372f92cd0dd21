#include "scenarios/driver/verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "scenarios/driver/life_judge.hpp"

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

/// A rank that tells of another's end only.
bool is_echo(const RankRecord& rank) {
  return rank.ending == Ending::kFailed && rank.code == name_of(Code::kPeerFailed);
}

/// How the worst ended rank ended. Our own mistakes and hangs come before errors, which all ranks
/// share, and causes before echoes.
Finding ending_of(const IncarnationRecord& life) {
  for (const bool echo : {false, true}) {
    for (const Ending ending : {Ending::kDefect, Ending::kHung, Ending::kLost, Ending::kFailed}) {
      for (const auto& rank : life.ranks) {
        if (rank.ending != ending || is_echo(rank) != echo) continue;
        return fail(rank.code, rank_text(rank) + ": " + without_code(rank.message, rank.code));
      }
    }
  }
  return {};
}

/// What is found at a save is a cause, what differs after a load or in a later step an effect; the
/// nearer a finding is to the cause, the sooner it says what to mend.
int distance_from_cause(const std::string& code) {
  constexpr std::array<std::string_view, 5> kCauses = {"FALSE_REPLICA", "NO_WRITER", "MULTI_WRITER",
                                                       "COVERAGE_GAP", "CHUNK_OVERLAP"};
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

/// Refused as expected: every rank failed, all with that code and those words.
Finding refusal_of(const IncarnationRecord& life, const Expectation& expect) {
  for (const auto& rank : life.ranks) {
    const std::string wanted = rank_text(rank) + " was to refuse with " + *expect.refusal;
    if (rank.ending != Ending::kFailed || rank.code != *expect.refusal) {
      const std::string what =
          rank.ending == Ending::kReturned ? "went on" : "ended by " + rank.message;
      return fail("VERDICT_DISAGREEMENT", wanted + " and " + what);
    }
    if (rank.message.find(expect.refusal_says) == std::string::npos) {
      return fail("VERDICT_DISAGREEMENT",
                  wanted + " saying '" + expect.refusal_says + "' and said: " + rank.message);
    }
  }
  return {};
}

Finding vacuous(std::string reason) {
  return {Verdict::kInconclusive, "ORACLE_VACUOUS", std::move(reason)};
}

/// Every life that began with a load has something to show, on every rank.
Finding vacuity_of(std::span<const IncarnationRecord> lives, const Expectation& expect) {
  for (std::size_t life = 1; life < lives.size(); ++life) {
    const std::string where = "incarnation " + std::to_string(life) + ", ";
    for (const auto& rank : lives[life].ranks) {
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
  for (const auto& rank : lives.back().ranks) elements += rank.result.elements;
  const auto least = std::max<std::uint64_t>(expect.elements_least, 1);
  if (elements >= least) return {};
  return vacuous(std::to_string(elements) + " elements were compared, " + std::to_string(least) +
                 " is the least");
}

Finding finding_of(const Scenario& scenario, std::span<const IncarnationRecord> lives) {
  const IncarnationRecord& last = lives.back();
  if (!last.launch_error.empty()) return {Verdict::kInconclusive, "IO", last.launch_error};
  const bool refuses = scenario.expect.refusal.has_value();  // in the last incarnation
  for (const auto& life : refuses ? lives.first(lives.size() - 1) : lives) {
    // A judge's word comes first: it says why, where an error mostly says that.
    const Finding judged = difference_of(life);
    const Finding ended = ending_of(life);
    const bool by_end = judged.verdict == Verdict::kPass ||
                        (ended.verdict != Verdict::kPass &&
                         distance_from_cause(ended.code) < distance_from_cause(judged.code));
    const Finding& found = by_end ? ended : judged;
    if (found.verdict != Verdict::kPass) return found;
  }
  if (lives.size() < scenario.incarnations.size()) {
    return refuses
               ? fail(last.ranks.front().code,
                      "refused before the last incarnation: " + last.ranks.front().message)
               : Finding{Verdict::kInconclusive, "ORACLE_VACUOUS", "not all incarnations were run"};
  }
  if (refuses) {
    if (Finding found = difference_of(last); found.verdict != Verdict::kPass) return found;
    if (Finding found = refusal_of(last, scenario.expect); found.verdict != Verdict::kPass) {
      return found;
    }
  }
  return vacuity_of(lives, scenario.expect);
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
  for (const auto& rank : lives.back().ranks) result.ranks.push_back(rank.result);
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
