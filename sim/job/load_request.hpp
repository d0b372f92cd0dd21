#pragma once
// Describes what a load of the job requests, and what it leaves out on purpose.

#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// What is known about a checkpoint before the load.
struct Stored {
  /// If null, the checkpoint is assumed to have this job's layout and sharding.
  const Value* common = nullptr;
  /// If null, the checkpoint is assumed to have the current keys and shapes.
  const Catalog* catalog = nullptr;
  bool release = false;  ///< true to use only the weights, whatever else is stored
};

/// The state that a load must fill, and the settings of this load.
struct LoadRequest {
  StateDict wanted;  ///< leaves point into the job's memory
  std::vector<std::string>
      excused;                     ///< keys that are left out on purpose, for LoadOptions::excused
  std::vector<std::string> notes;  ///< one line per decision, with the reason
};

/// True if a module's optimizer loads stored state. False if the job leaves optimizers out, or if
/// the module is frozen in this job or was frozen in the checkpoint.
bool takes_optimizer(const LoadChoice& taking, const ModuleConfig& own, const ModuleConfig& from);

/// Collective over the world. Does the work of TrainingJob::load_request().
LoadRequest load_request(JobData& job, const Stored& stored, const JobGroups& given);

}  // namespace reprise::sim
