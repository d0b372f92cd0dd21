#pragma once
// Defines the data of a job on one rank. The functions and classes of sim/job work on this data.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "reprise/fabric.hpp"
#include "sim/job/data/job_config.hpp"
#include "sim/job/data/policy.hpp"
#include "sim/job/data/step_record.hpp"
#include "sim/job/model/array.hpp"
#include "sim/job/model/data_iterator.hpp"
#include "sim/job/model/progress.hpp"
#include "sim/job/modules/module.hpp"
#include "sim/job/rerun/rerun_machine.hpp"

namespace reprise::sim {

struct JobData {
  JobConfig config;
  JobPolicy policy;
  GlobalRank rank;
  /// All modules of the job, even those of which this rank has no part.
  std::vector<ModuleConfig> all_modules;
  std::shared_ptr<Communicator> world;
  std::vector<Module> modules;  ///< modules of which this rank has a part
  TrainingProgress progress;
  std::optional<std::int64_t> parent_step;
  LoadChoice taking;  ///< options of the last load request
  RerunMachine machine;
  DataIterator batches;
  std::vector<AppliedSamples> applied;  ///< samples that this life has used
  std::vector<Moved> moved;             ///< moves of storage to other addresses, in order
  Array<std::uint8_t> extra;  ///< a tensor that belongs to no module; empty if there is none
};

}  // namespace reprise::sim
