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

/// Searches below `directory` for a checkpoint of this scenario, left by a run with --save. If
/// there is none, uses `directory` itself as the checkpoint. Throws an Error that names the
/// directory if it has no checkpoint, if none of our training jobs wrote the checkpoint, or if the
/// checkpoint is a release, which has no iteration.
StoredStart stored_start(const std::string& directory, const Scenario& scenario);

/// Adds a first life, which is a command that copies the checkpoint into the store. All other lives
/// may load the copy. Iterations in the scenario are counted from the checkpoint's iteration,
/// unless the first load restores only weights. Expected learning rates are dropped, because they
/// apply to other steps.
void begin_from(const StoredStart& start, Scenario& scenario);

}  // namespace reprise::driver
