#pragma once
// Builds the config of the job that a scenario describes.

#include "driver/language/scenario.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {

/// Returns the name of a rank's device, "node0:1". A restart on other devices uses other nodes.
std::string device_of(const Scenario& scenario, std::size_t incarnation, GlobalRank rank);

/// Returns the config of that incarnation as if it were the first. It skips the iterations that the
/// scenario expects to be skipped.
sim::JobConfig config_of(const Scenario& scenario, std::size_t incarnation);

/// Returns the same config for a job that has not loaded yet: it starts from other values, so that
/// a value that was not restored can't pass for a restored one.
sim::JobConfig unloaded_config_of(const Scenario& scenario, std::size_t incarnation);

/// Returns the parts that a save includes, as --no-save-optim and --no-save-rng of Megatron select.
sim::SaveParts parts_of(const SaveAction& save);

}  // namespace reprise::driver
