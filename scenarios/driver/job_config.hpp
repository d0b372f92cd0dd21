#pragma once
// The job that a scenario describes.

#include "scenarios/driver/scenario.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {

/// Of that incarnation, as if it were the first.
sim::JobConfig config_of(const Scenario& scenario, std::size_t incarnation);

/// The same before it loads: it starts from other values, so that what was not restored can't pass
/// for restored.
sim::JobConfig unloaded_config_of(const Scenario& scenario, std::size_t incarnation);

}  // namespace reprise::driver
