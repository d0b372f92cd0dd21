#pragma once
// Describes what a load of the job requests, and what it leaves out on purpose.

#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// Information about a checkpoint that is available before the load.
struct Stored {
  const Value* common = nullptr;     ///< if null, this job's layout and sharding are assumed
  const Catalog* catalog = nullptr;  ///< if null, the current keys and shapes are assumed
  bool release = false;              ///< true to use only the weights, whatever else is stored
};

/// The state that a load must fill, and its settings.
struct LoadRequest {
  StateDict wanted;  ///< leaves point into the job's memory
  std::vector<std::string>
      excused;                     ///< keys that are left out on purpose, for LoadSettings::excused
  std::vector<std::string> notes;  ///< a line with the reason for each decision
};

/// True if a module's optimizer loads stored state. False if the module is a stub in this job, or
/// was one in the checkpoint.
bool takes_optimizer(const LoadChoice& taking, const ModuleConfig& own, const ModuleConfig& from);

/// Collective over the world. Does the work of TrainingJob::load_request().
LoadRequest load_request(JobData& job, const Stored& stored, const JobGroups& given);

}  // namespace reprise::sim
