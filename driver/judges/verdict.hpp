#pragma once
// Derives a verdict from the ranks' records. Pure.

#include <map>
#include <span>
#include <string>

#include "driver/language/scenario.hpp"
#include "driver/record/record.hpp"

namespace reprise::driver {

/// Returns the result. `lives` are the lives that ran, in order; the last one may be
/// unfinished.
reports::ScenarioResult judge(const Scenario& scenario, std::span<const LifeRecord> lives);

/// Returns all codes that were found, with the number of findings of each. Includes refusals that
/// the scenario expects.
std::map<std::string, std::uint64_t> codes_of(std::span<const LifeRecord> lives);

/// True if some rank ended because of a deadline or a defect in our own code. Other findings are
/// then not reliable.
bool broke_down(std::span<const LifeRecord> lives);

/// True if the life ended as the scenario allows, so that the next one can start from its store.
/// Three endings are allowed: every rank finished; a planned fault ended some rank's life and the
/// other ranks ended with a named error; all ranks refused a load as planned. Other findings do not
/// matter here; they are judged after the last life.
bool may_go_on(const Scenario& scenario, std::size_t number, const LifeRecord& life);

}  // namespace reprise::driver
