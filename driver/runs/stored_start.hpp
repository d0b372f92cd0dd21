#pragma once
// Lets the first life of a scenario start from an existing checkpoint.

#include <string>

#include "driver/language/scenario.hpp"
#include "sim/job/modules/megatron_common.hpp"
#include "sim/job/modules/module_keys.hpp"

namespace reprise::driver {

struct StoredStart {
  std::string directory;  ///< absolute path of the directory with `.metadata`
  sim::CommonState told;  ///< common state of the checkpoint
  sim::KeyForm keys = sim::KeyForm::kPrefixed;
};

/// Finds the scenario's own checkpoint below `directory`, where a run with --save left it;
/// otherwise takes `directory` itself as the checkpoint. Throws an error with the place if there is
/// no checkpoint, if it was not written by one of our training jobs, or if it is a release, which
/// has no iteration.
StoredStart stored_start(const std::string& directory, const Scenario& scenario);

/// Adds a first life, a command, that leaves a copy of the checkpoint; all other lives may load the
/// copy. Iterations in the scenario count from the checkpoint's iteration, unless the first load
/// takes only weights. Expected learning rates are dropped, because they apply to other steps.
void begin_from(const StoredStart& start, Scenario& scenario);

}  // namespace reprise::driver
