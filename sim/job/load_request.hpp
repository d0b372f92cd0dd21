#pragma once
// What a load of the job requests, and what it leaves out on purpose.

#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// Information about a checkpoint that is available before the load.
struct Stored {
  const Value* common = nullptr;     ///< nullptr: assume this layout and sharding
  const Catalog* catalog = nullptr;  ///< nullptr: assume the current keys and shapes
  bool release = false;              ///< true: holds only weights, whatever else is stored
};

/// The state that a load must fill, and its settings.
struct LoadRequest {
  StateDict wanted;  ///< leaves point into the job's memory
  std::vector<std::string>
      excused;                     ///< keys that are left out on purpose, for LoadSettings::excused
  std::vector<std::string> notes;  ///< a line with the reason for each decision
};

/// True if a module's optimizer loads stored state: not if it is, or was, a stub.
bool takes_optimizer(const LoadChoice& taking, const ModuleConfig& own, const ModuleConfig& from);

/// Collective over the world: does what TrainingJob's function of this name does.
LoadRequest load_request(JobData& job, const Stored& stored, const JobGroups& given);

}  // namespace reprise::sim
