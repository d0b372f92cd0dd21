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

/// True if every rank came to its end, so that the next incarnation can start from what it left;
/// judges have their say at the end.
bool went_well(const IncarnationRecord& life);

}  // namespace reprise::driver
