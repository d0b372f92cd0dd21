#pragma once
// Builds the config of the job that a scenario describes.

#include "driver/language/scenario.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {

/// Returns the name of a rank's device, such as "node0:1". A restart on other devices uses other
/// nodes.
std::string device_of(const Scenario& scenario, std::size_t life, GlobalRank rank);

/// Returns the config of the life's job, as if the life were the job's first. The job
/// skips the iterations that the scenario expects to be skipped.
sim::JobConfig config_of(const Scenario& scenario, std::size_t life);

/// Returns the same config, but for a job that has not loaded yet. The job starts from other
/// values, so that a value that was not restored can't be mistaken for a restored one.
sim::JobConfig unloaded_config_of(const Scenario& scenario, std::size_t life);

/// Returns the parts that a save includes; they correspond to Megatron's --no-save-optim and
/// --no-save-rng.
sim::SaveParts parts_of(const SaveAction& save);

}  // namespace reprise::driver
