#pragma once
// How a life may end: with all ranks back, by a planned fault, or in a planned refusal.

#include "scenarios/driver/judgement.hpp"
#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

/// A planned fault ended some rank's life, or kept it from its peers.
bool has_planned_end(const IncarnationRecord& life);

/// In a word, and the code if it ended by one on all ranks.
struct LifeEnd {
  /// "ran" without a load, "continued" or "fell_back" after one, "refused" as the scenario allows,
  /// "cut_short" by a planned fault, "failed".
  std::string outcome;
  std::optional<Code> code = {};
};
LifeEnd end_of(const Scenario& scenario, std::size_t number, const IncarnationRecord& life);

/// What is wrong with how the life ended, if it did not end as the scenario allows.
Judgement unplanned_end_of(const Scenario& scenario, std::size_t number,
                           const IncarnationRecord& life);

}  // namespace reprise::driver
