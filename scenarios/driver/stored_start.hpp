#pragma once
// A checkpoint from outside of a scenario, from which its first life begins.

#include <string>

#include "scenarios/driver/scenario.hpp"
#include "sim/job/megatron_common.hpp"
#include "sim/job/module_keys.hpp"

namespace reprise::driver {

struct StoredStart {
  std::string directory;  ///< absolute, of its `.metadata`
  sim::CommonState told;  ///< by the checkpoint of itself
  sim::KeyForm keys = sim::KeyForm::kPrefixed;
};

/// Finds the scenario's own checkpoint under `directory`, where a run with --save left it, or else
/// takes `directory` for a checkpoint. Throws an error that names the place where there is none,
/// where it is no training job's of ours, and where it is a release, which is of no iteration.
StoredStart stored_start(const std::string& directory, const Scenario& scenario);

/// Puts a life before the first that is a command and leaves a copy of the checkpoint; all others
/// may load it. What the scenario says of iterations counts from the checkpoint's on, unless the
/// first load takes weights alone. Expected learning rates are left out: they are of other steps.
void begin_from(const StoredStart& start, Scenario& scenario);

}  // namespace reprise::driver
