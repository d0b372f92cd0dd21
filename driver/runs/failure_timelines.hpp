#pragma once
// Adds to the failures of a report what the ranks did at the end of the life that failed.

#include <cstddef>
#include <vector>

#include "driver/runs/run.hpp"

namespace reprise::driver {

/// Number of failures that get a timeline, so that reports stay small.
inline constexpr std::size_t kTimelinesMax = 20;

/// Runs the first scenarios that failed on the simulated lane once more, with a recorder; runs that
/// pass cost nothing. If the second run takes another course, which a defect in the harness might
/// cause, the failure gets no timeline. Neither do failures of scenarios with commands, because a
/// command may change something when it runs again.
void add_timelines(const std::vector<Scenario>& scenarios, const RunRequest& request,
                   reports::Report& report);

}  // namespace reprise::driver
