#include "scenarios/driver/life_end.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "scenarios/driver/life_judge.hpp"

namespace reprise::driver {
namespace {

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

/// Refused with that code and those words on every rank.
Finding refusal_of(const IncarnationRecord& life, const std::string& code,
                   const std::string& says) {
  for (const auto& rank : life.ranks) {
    const std::string wanted = rank_text(rank) + " was to refuse with " + code;
    if (rank.ending != Ending::kFailed || rank.code != code) {
      const std::string what =
          rank.ending == Ending::kReturned ? "went on" : "ended by " + rank.message;
      return fail("VERDICT_DISAGREEMENT", wanted + " and " + what);
    }
    if (rank.message.find(says) == std::string::npos) {
      return fail("VERDICT_DISAGREEMENT",
                  wanted + " saying '" + says + "' and said: " + rank.message);
    }
  }
  return {};
}

bool is_last(const Scenario& scenario, std::size_t number) {
  return number + 1 == scenario.incarnations.size();
}

/// The code with which this life's load must be refused; empty: it must not.
std::string refusal_planned(const Scenario& scenario, std::size_t number) {
  const std::string& fails = scenario.incarnations[number].fails;
  if (!fails.empty() || !is_last(scenario, number)) return fails;
  return scenario.expect.refusal.value_or("");
}

/// All ranks refused the load that the life began with, by one named error, and the scenario leaves
/// that open.
bool refused_as_allowed(const Scenario& scenario, std::size_t number,
                        const IncarnationRecord& life) {
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

/// A planned fault ended this rank's life.
bool died_as_planned(const RankRecord& rank) {
  return std::any_of(rank.faults.begin(), rank.faults.end(), [](const sim::FaultState& fault) {
    return fault.fired && sim::ends_life(fault.spec.kind);
  });
}

/// A life in which some rank was to die and did. The others may not have noticed, or ended by a
/// named error.
Finding death_of(const IncarnationRecord& life) {
  for (const auto& rank : life.ranks) {
    if (rank.ending == Ending::kReturned || rank.ending == Ending::kFailed) continue;
    if (rank.ending == Ending::kLost && died_as_planned(rank)) continue;
    return fail(rank.code, rank_text(rank) + ", when another rank had died: " +
                               without_code(rank.message, rank.code));
  }
  return {};
}

bool has_planned_death(const IncarnationRecord& life) {
  return std::any_of(life.ranks.begin(), life.ranks.end(), died_as_planned);
}

bool has_failed_peer(const IncarnationRecord& life) {
  return std::any_of(life.ranks.begin(), life.ranks.end(), failed_its_peers);
}

bool has_fired(const IncarnationRecord& life, sim::FaultKind kind) {
  return std::any_of(life.ranks.begin(), life.ranks.end(), [kind](const RankRecord& rank) {
    return std::any_of(rank.faults.begin(), rank.faults.end(), [kind](const auto& fault) {
      return fault.fired && fault.spec.kind == kind;
    });
  });
}

/// A life in which some rank was to fail its peers, and did: all ranks learn by the named error
/// that a participant is missing, or came when the deadline was over. Who came too late may find
/// that the others have ended.
Finding failed_peer_of(const IncarnationRecord& life) {
  const bool peer_failed = has_fired(life, sim::FaultKind::kFails);
  for (const auto& rank : life.ranks) {
    const bool named =
        rank.ending == Ending::kFailed &&
        (rank.code == name_of(Code::kDeadline) ||
         ((peer_failed || failed_its_peers(rank)) && rank.code == name_of(Code::kPeerFailed)));
    if (named) continue;
    const std::string how =
        rank.ending == Ending::kReturned ? "it went on" : without_code(rank.message, rank.code);
    return fail(rank.code.empty() ? "VERDICT_DISAGREEMENT" : rank.code,
                rank_text(rank) + ", when a rank had failed its peers: " + how);
  }
  return {};
}

}  // namespace

bool has_planned_end(const IncarnationRecord& life) {
  return has_planned_death(life) || has_failed_peer(life);
}

Finding unplanned_end_of(const Scenario& scenario, std::size_t number,
                         const IncarnationRecord& life) {
  if (has_planned_death(life)) return death_of(life);
  if (has_failed_peer(life)) return failed_peer_of(life);
  if (const std::string code = refusal_planned(scenario, number); !code.empty()) {
    return refusal_of(life, code, is_last(scenario, number) ? scenario.expect.refusal_says : "");
  }
  if (refused_as_allowed(scenario, number, life)) return {};
  return ending_of(life);
}

}  // namespace reprise::driver
