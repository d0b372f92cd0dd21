#pragma once
// Says whether a mutant had an effect on a run that passed.

#include "driver/runs/run.hpp"

namespace reprise::driver {

/// Makes a pass with a mutant inconclusive if the same run without the mutant ends with the same
/// content and memory use. The wrong functions were then called, but the defect did not show, so
/// the pass says nothing of it. Only the simulated lane repeats what it does.
void require_effect(const Scenario& scenario, LaneKind lane, const LaneOptions& options,
                    reports::ScenarioResult& with);

}  // namespace reprise::driver
