#pragma once
// Lets the first life of a scenario start from an existing checkpoint.

#include <string>

#include "driver/language/scenario.hpp"
#include "sim/job/modules/megatron_common.hpp"
#include "sim/job/modules/module_keys.hpp"

namespace reprise::driver {

struct StoredStart {
  std::string directory;  ///< absolute path of the one with `.metadata`
  sim::CommonState told;  ///< common state in the checkpoint
  sim::KeyForm keys = sim::KeyForm::kPrefixed;
};

/// Finds the scenario's own checkpoint under `directory`, where a run with --save left it; else
/// takes `directory` itself for the checkpoint. Throws an error that names the place if there is
/// none, if no training job of ours wrote it, or if it is a release, which has no iteration.
StoredStart stored_start(const std::string& directory, const Scenario& scenario);

/// Adds a first life, a command, that leaves a copy of the checkpoint; all others may load it.
/// Iterations in the scenario count from the checkpoint's, unless the first load takes only
/// weights. Expected learning rates are dropped: they apply to other steps.
void begin_from(const StoredStart& start, Scenario& scenario);

}  // namespace reprise::driver
