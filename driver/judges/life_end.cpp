#include "driver/judges/life_end.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "driver/judges/life_judge.hpp"
#include "properties/finding_code.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using reports::LifeOutcome;

/// Returns the outcome of a life, given the outcome of the load at its start.
LifeOutcome life_outcome_of(Outcome load) {
  switch (load) {
    case Outcome::kContinued:
      return LifeOutcome::kContinued;
    case Outcome::kFellBack:
      return LifeOutcome::kFellBack;
    case Outcome::kRefused:
      return LifeOutcome::kRefused;
  }
  return LifeOutcome::kFailed;
}

/// True if the rank's error only reports that another rank ended.
bool is_echo(const RankRecord& rank) {
  return rank.ending == Ending::kFailed && rank.code == Code::kPeerFailed;
}

/// Returns the code of a rank whose life did not end normally.
FindingCode code_of(const RankRecord& rank) { return rank.code.value_or(Code::kInternal); }

std::string message_of(const RankRecord& rank) {
  return judged::without_code(rank.message, code_of(rank));
}

/// Takes rank and key from the end of an error's message, such as "... [rank 1, key w, file f]". An
/// error of one rank can end the lives of all ranks, each with the same message.
void take_place(const std::string& message, Finding& found) {
  constexpr std::string_view kRank = " [rank ";
  constexpr std::string_view kKey = ", key ";
  const auto begin = message.rfind(kRank);
  if (begin == std::string::npos || !message.ends_with(']')) return;
  const char* const end = message.data() + message.size() - 1;
  std::int32_t rank = 0;
  const auto [rest, error] = std::from_chars(message.data() + begin + kRank.size(), end, rank);
  if (error != std::errc{}) return;
  found.rank = GlobalRank{rank};
  std::string_view key(rest, static_cast<std::size_t>(end - rest));
  if (!key.starts_with(kKey)) return;
  key.remove_prefix(kKey.size());
  found.key = key.substr(0, key.find(", file "));
}

/// Returns the worst ending of any rank. From worst to mildest: a defect of our own code, a hang, a
/// lost rank, an error, an error that only reports the end of another rank.
std::optional<Finding> ending_of(const LifeRecord& life) {
  for (const bool echo : {false, true}) {
    for (const Ending ending : {Ending::kDefect, Ending::kHung, Ending::kLost, Ending::kFailed}) {
      for (const auto& rank : life.ranks) {
        if (rank.ending != ending || is_echo(rank) != echo) continue;
        auto found = fail_at(rank, code_of(rank), rank_text(rank) + ": " + message_of(rank));
        if (found) take_place(rank.message, *found);
        return found;
      }
    }
  }
  return {};
}

/// Checks that every rank refused the load with this code and with a message that contains `says`.
std::optional<Finding> refusal_of(const LifeRecord& life, Code code, const std::string& says) {
  for (const auto& rank : life.ranks) {
    const std::string wanted =
        rank_text(rank) + " should have refused with " + std::string(name_of(code));
    if (rank.ending != Ending::kFailed || rank.code != code) {
      const std::string what =
          rank.ending == Ending::kReturned ? "continued" : "ended by " + rank.message;
      return fail_at(rank, judged::kVerdictDisagreement, wanted + " but " + what);
    }
    if (rank.message.find(says) == std::string::npos) {
      return fail_at(rank, judged::kVerdictDisagreement,
                     wanted + " saying '" + says + "' but said: " + rank.message);
    }
  }
  return {};
}

bool is_last(const Scenario& scenario, std::size_t number) {
  return number + 1 == scenario.lives.size();
}

/// Returns the code with which this life's load must be refused; nothing if it must not be refused.
std::optional<Code> refusal_planned(const Scenario& scenario, std::size_t number) {
  const auto& fails = scenario.lives[number].fails;
  return fails || !is_last(scenario, number) ? fails : scenario.expect.refusal;
}

/// Returns the text that each rank's message must contain if this life's load is refused.
const std::string& refusal_says(const Scenario& scenario, std::size_t number) {
  const LifePlan& plan = scenario.lives[number];
  return plan.fails ? plan.fails_says : scenario.expect.refusal_says;
}

/// True if all ranks refused the load at the start of the life with the same named error, and the
/// scenario allows that.
bool refused_as_allowed(const Scenario& scenario, std::size_t number, const LifeRecord& life) {
  const auto& outcomes = scenario.expect.outcomes;
  if (number == 0 || life.ranks.empty()) return false;
  if (std::find(outcomes.begin(), outcomes.end(), Outcome::kRefused) == outcomes.end()) {
    return false;
  }
  return std::all_of(life.ranks.begin(), life.ranks.end(), [&](const RankRecord& rank) {
    return rank.ending == Ending::kFailed && rank.code == life.ranks.front().code &&
           rank.loads.empty();
  });
}

/// Returns the error code with which a rank ends after a fault of this kind; nothing if ranks may
/// end with several codes.
std::optional<Code> code_after(sim::FaultKind kind) {
  switch (kind) {
    case sim::FaultKind::kWriteError:
    case sim::FaultKind::kSyncError:
    case sim::FaultKind::kDirectorySyncError:
    case sim::FaultKind::kReadError:
      return Code::kIo;
    case sim::FaultKind::kNoSpace:
      return Code::kNoSpace;
    default:
      return std::nullopt;
  }
}

/// True if a rank can end with this code because another rank died, or because of a further planned
/// fault.
bool follows_from_death(const LifeRecord& life, FindingCode code) {
  if (code == Code::kPeerFailed || code == Code::kDeadline) return true;
  return std::any_of(life.ranks.begin(), life.ranks.end(), [code](const RankRecord& rank) {
    return std::any_of(rank.faults.begin(), rank.faults.end(), [code](const auto& fault) {
      return fault.fired && code == code_after(fault.spec.kind);
    });
  });
}

/// Judges a life in which a rank died as planned. Every other rank must have finished normally, or
/// ended with an error that follows from the death.
std::optional<Finding> death_of(const LifeRecord& life) {
  for (const auto& rank : life.ranks) {
    if (rank.ending == Ending::kReturned) continue;
    if (rank.ending == Ending::kFailed && follows_from_death(life, code_of(rank))) continue;
    if (rank.ending == Ending::kLost && died_as_planned(rank)) continue;
    return fail_at(rank, code_of(rank),
                   rank_text(rank) + ", after another rank had died: " + message_of(rank));
  }
  return {};
}

bool has_planned_death(const LifeRecord& life) {
  return std::any_of(life.ranks.begin(), life.ranks.end(), died_as_planned);
}

bool has_failed_peer(const LifeRecord& life) {
  return std::any_of(life.ranks.begin(), life.ranks.end(), failed_its_peers);
}

bool has_fired(const LifeRecord& life, sim::FaultKind kind) {
  return std::any_of(life.ranks.begin(), life.ranks.end(), [kind](const RankRecord& rank) {
    return std::any_of(rank.faults.begin(), rank.faults.end(), [kind](const auto& fault) {
      return fault.fired && fault.spec.kind == kind;
    });
  });
}

/// Judges a life in which a planned fault kept one rank out of a collective. Every rank must end
/// with DEADLINE. PEER_FAILED is accepted from the rank that came too late. It is accepted from
/// every rank if the fault made the collective call fail.
std::optional<Finding> failed_peer_of(const LifeRecord& life) {
  const bool peer_failed = has_fired(life, sim::FaultKind::kFails);
  for (const auto& rank : life.ranks) {
    const bool named = rank.ending == Ending::kFailed &&
                       (rank.code == Code::kDeadline || ((peer_failed || failed_its_peers(rank)) &&
                                                         rank.code == Code::kPeerFailed));
    if (named) continue;
    const std::string how = rank.ending == Ending::kReturned ? "it continued" : message_of(rank);
    return fail_at(rank, rank.code.value_or(judged::kVerdictDisagreement),
                   rank_text(rank) + ", after a rank had failed its peers: " + how);
  }
  return {};
}

}  // namespace

bool died_as_planned(const RankRecord& rank) {
  return std::any_of(rank.faults.begin(), rank.faults.end(), [](const sim::FaultState& fault) {
    return fault.fired && sim::ends_life(fault.spec.kind);
  });
}

bool has_planned_end(const LifeRecord& life) {
  return has_planned_death(life) || has_failed_peer(life);
}

LifeEnd end_of(const Scenario& scenario, std::size_t number, const LifeRecord& life) {
  if (life.ranks.empty()) return {LifeOutcome::kFailed};
  if (has_planned_end(life)) return {LifeOutcome::kCutShort};
  const RankRecord& first = life.ranks.front();
  const bool returned = std::all_of(life.ranks.begin(), life.ranks.end(), [](const auto& rank) {
    return rank.ending == Ending::kReturned;
  });
  if (returned) return {first.outcome ? life_outcome_of(*first.outcome) : LifeOutcome::kRan};
  const bool refused = !unplanned_end_of(scenario, number, life);
  return {refused ? LifeOutcome::kRefused : LifeOutcome::kFailed, first.code};
}

std::optional<Finding> unplanned_end_of(const Scenario& scenario, std::size_t number,
                                        const LifeRecord& life) {
  if (has_planned_death(life)) return death_of(life);
  if (has_failed_peer(life)) return failed_peer_of(life);
  if (const auto code = refusal_planned(scenario, number)) {
    return refusal_of(life, *code, refusal_says(scenario, number));
  }
  if (refused_as_allowed(scenario, number, life)) return {};
  return ending_of(life);
}

}  // namespace reprise::driver
