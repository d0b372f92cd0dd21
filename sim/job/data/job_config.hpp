#pragma once
// The settings of a job on one rank, by what they decide.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/job/groups/group_registry.hpp"
#include "sim/job/groups/groups.hpp"
#include "sim/job/groups/layout.hpp"
#include "sim/job/model/processor.hpp"
#include "sim/job/model/schedule.hpp"
#include "sim/job/modules/module_config.hpp"
#include "sim/job/modules/module_keys.hpp"
#include "sim/job/optimizer/sharding.hpp"
#include "sim/job/rerun/rerun_settings.hpp"

namespace reprise::sim {

/// The models that train, and the ranks that train them.
struct JobMakeup {
  std::string model = "gpt-tiny";
  Layout layout = {};
  /// The job's ranks in the layout's order; empty: all of the fabric's, 0 .. n-1.
  std::vector<GlobalRank> ranks = {};
  /// If not empty, replaces the members above and CheckpointForm::optimizer_sharding.
  std::vector<ModuleConfig> modules = {};
};

struct JobIdentity {
  std::string run = "run";               ///< identity that is written, and expected in a load
  std::string engine = "reprise";        ///< name and version that are written
  std::vector<std::string> adopts = {};  ///< other runs whose checkpoints are accepted
};

struct TrainingSettings {
  std::uint64_t seed = 1;  ///< seed of start values, data and random streams; a load replaces it
  Schedule schedule = {};
  double clip_grad = 0;       ///< largest norm of gradients over all modules; 0: no limit
  bool random_by_dp = false;  ///< true: random streams differ by rank of dp x cp
};

/// The form of a job's checkpoints.
struct CheckpointForm {
  Sharding optimizer_sharding = Sharding::kFullyReshardable;
  std::size_t shard_dim = 0;          ///< dimension that cuts the optimizer's boxes
  bool plain_first = false;           ///< order of an optimizer's parameter groups
  KeyForm keys = KeyForm::kPrefixed;  ///< form of the modules' keys
  std::string rng_prefix = {};        ///< prefix of the keys of random states
};

/// The groups that saves and loads use.
struct GroupChoice {
  GroupSource source = {};    ///< groups that they are given
  RegistryUse fallback = {};  ///< global groups that may replace missing ones
};

/// Parts that a load leaves out on purpose: Megatron's options of these names.
struct LoadChoice {
  bool optimizer = true;  ///< no-load-optim: masters come from the weights, fresh schedule
  bool schedule = true;   ///< no-load-scheduler
  bool random = true;     ///< no-load-rng
  bool finetune = false;  ///< only weights, and from iteration 0
  std::vector<std::string> adds = {};   ///< modules missing in the checkpoint: they start fresh
  std::vector<std::string> drops = {};  ///< modules in the checkpoint that this job lacks

  friend bool operator==(const LoadChoice&, const LoadChoice&) = default;
};

struct JobHardware {
  std::string device = "localhost:0";        ///< device of this rank: "node:index"
  std::int32_t ranks_per_node = 0;           ///< 0: one node for all
  Processor* processor = &host_processor();  ///< processor with the arrays; outlives the job
};

struct JobConfig {
  JobMakeup makeup = {};
  JobIdentity identity = {};
  TrainingSettings training = {};
  CheckpointForm checkpoint = {};
  GroupChoice groups = {};
  LoadChoice load = {};
  RerunSettings rerun = {};
  JobHardware hardware = {};
};

/// Returns the modules of a job, with their ranks: one without a name if the job is one model.
std::vector<ModuleConfig> modules_of(const JobConfig& config);

}  // namespace reprise::sim
