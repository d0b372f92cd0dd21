#pragma once
// Derives a verdict from the ranks' records. Pure.

#include <span>
#include <string>

#include "driver/language/scenario.hpp"
#include "driver/record/record.hpp"

namespace reprise::driver {

/// `lives` are the incarnations that ran, in order. A run stops after the first that did not
/// finish.
reports::ScenarioResult judge(const Scenario& scenario, std::span<const IncarnationRecord> lives);

/// True if some rank ended by our own mistake or at a deadline: then no other finding counts as a
/// judgement.
bool broke_down(std::span<const IncarnationRecord> lives);

/// True if the life ended as the scenario allows, so that the next one can start from its store:
/// every rank finished; or a planned fault ended some rank's life and the others ended with a named
/// error; or all ranks refused a load as planned. Other findings are judged at the end.
bool may_go_on(const Scenario& scenario, std::size_t number, const IncarnationRecord& life);

}  // namespace reprise::driver
