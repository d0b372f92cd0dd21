#pragma once
// The job that a scenario describes.

#include "scenarios/driver/scenario.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {

/// Name of a rank's device, "node0:1"; a restart on other devices is on other nodes.
std::string device_of(const Scenario& scenario, std::size_t incarnation, GlobalRank rank);

/// Of that incarnation, as if it were the first; iterations that the scenario expects to be skipped
/// are.
sim::JobConfig config_of(const Scenario& scenario, std::size_t incarnation);

/// The same before it loads: it starts from other values, so that what was not restored can't pass
/// for restored.
sim::JobConfig unloaded_config_of(const Scenario& scenario, std::size_t incarnation);

/// What a save hands over, as Megatron's --no-save-optim and --no-save-rng say.
sim::SaveParts parts_of(const SaveAction& save);

}  // namespace reprise::driver
