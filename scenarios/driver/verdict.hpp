#pragma once
// From the ranks' records to a verdict. Pure.

#include <span>
#include <string>

#include "scenarios/driver/record.hpp"
#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

/// `lives` are the incarnations that were run, in order; a run stops at the first that did not come
/// to its end.
reports::ScenarioResult judge(const Scenario& scenario, std::span<const IncarnationRecord> lives);

/// True if some rank ended by our own mistake or at a deadline: then nothing else that was found
/// counts as a judgement.
bool broke_down(std::span<const IncarnationRecord> lives);

/// True if the life ended as the scenario allows, so that the next one can start from what it left;
/// judges have their say at the end. Every rank came to its end; or a planned fault ended some
/// rank's life, and the others ended with it by a named error; or all refused a load as planned.
bool may_go_on(const Scenario& scenario, std::size_t number, const IncarnationRecord& life);

}  // namespace reprise::driver
