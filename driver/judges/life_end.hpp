#pragma once
// Determines how a life ended: all ranks returned, a planned fault ended it, or a load was refused
// as planned.

#include "driver/language/scenario.hpp"
#include "driver/record/record.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// True if a planned fault ended this rank's life.
bool died_as_planned(const RankRecord& rank);

/// True if a planned fault ended the life of a rank, or kept a rank out of a collective.
bool has_planned_end(const LifeRecord& life);

/// The outcome of a life, and the error code if all ranks ended with the same one.
struct LifeEnd {
  reports::LifeOutcome outcome = reports::LifeOutcome::kFailed;
  std::optional<FindingCode> code = {};
};
LifeEnd end_of(const Scenario& scenario, std::size_t number, const LifeRecord& life);

/// Returns what is wrong with the end of the life; nothing if the scenario allows it.
std::optional<Finding> unplanned_end_of(const Scenario& scenario, std::size_t number,
                                        const LifeRecord& life);

}  // namespace reprise::driver
