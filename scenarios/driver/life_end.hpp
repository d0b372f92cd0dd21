#pragma once
// Tells how a life ended: all ranks returned, a planned fault, or a planned refusal.

#include "scenarios/driver/judgement.hpp"
#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

/// True if a planned fault ended some rank's life or cut it off from its peers.
bool has_planned_end(const IncarnationRecord& life);

/// A word for the end of a life, and the code if all ranks ended by the same one.
struct LifeEnd {
  /// "ran" without a load, "continued" or "fell_back" after one, "refused" as the scenario allows,
  /// "cut_short" by a planned fault, "failed".
  std::string outcome;
  std::optional<RulingCode> code = {};
};
LifeEnd end_of(const Scenario& scenario, std::size_t number, const IncarnationRecord& life);

/// Returns the problem with the end of the life, if it did not end as the scenario allows.
Judgement unplanned_end_of(const Scenario& scenario, std::size_t number,
                           const IncarnationRecord& life);

}  // namespace reprise::driver
