#pragma once
// Finds what one entry of a scenario's result says against another. What a run reports was derived
// from the same lives, so in a true report the entries agree, whatever the scenario was.

#include <string>

#include "reports/report.hpp"

namespace reprise::reports {

/// Returns the first contradiction between entries of the result, such as "life 1 has the outcome
/// 'continued', with the exit code 139"; empty if they agree. The result must claim a pass on a
/// lane of jobs, so not on kFiles. Programs of others choose their exit codes, and may have faults
/// that concern no single rank. `seconds` is how long the whole run took.
std::string contradiction_in(const ScenarioResult& result, ReportLane lane, double seconds);

}  // namespace reprise::reports
