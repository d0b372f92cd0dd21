#pragma once
// Defines the settings of a job on one rank, grouped by what they decide.

#include <cstdint>
#include <functional>
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

/// The models to train, and the ranks that train them.
struct JobMakeup {
  std::string model = "gpt-tiny";
  Layout layout = {};
  /// The job's ranks in the layout's order. If empty, all ranks of the fabric, 0 .. n-1.
  std::vector<GlobalRank> ranks = {};
  /// If not empty, replaces the members above and CheckpointForm::optimizer_sharding.
  std::vector<ModuleConfig> modules = {};
};

struct JobIdentity {
  std::string run = "run";               ///< identity of the run; loads expect the same one
  std::string engine = "reprise";        ///< name and version of the engine, written by saves
  std::vector<std::string> adopts = {};  ///< other runs; a load also accepts their checkpoints
};

struct TrainingSettings {
  std::uint64_t seed = 1;  ///< seed of start values, data and random streams; replaced by a load
  Schedule schedule = {};
  double clip_grad = 0;       ///< limit on the norm of gradients over all modules; 0 for none
  bool random_by_dp = false;  ///< true if each rank of dp x cp has different random streams
  /// The field in which the two parameter groups of an optimizer differ.
  GroupField groups_differ_in = GroupField::kWdMult;
  /// Called before the optimizer changes the state, so that saves in flight have copied it.
  std::function<void()> before_update = {};
};

/// The form of a job's checkpoints.
struct CheckpointForm {
  Sharding optimizer_sharding = Sharding::kFullyReshardable;
  std::size_t shard_dim = 0;          ///< dimension along which the optimizer's boxes are split
  bool plain_first = false;           ///< true if an optimizer's plain parameter group comes first
  KeyForm keys = KeyForm::kPrefixed;  ///< form of the modules' keys
  std::string rng_prefix = {};        ///< prefix of the keys of random states
  bool extra_tensor = false;          ///< true if there is a tensor that belongs to no module
};

/// The groups that saves and loads use.
struct GroupChoice {
  GroupSource source = {};    ///< which of the job's own groups are passed to saves and loads
  RegistryUse fallback = {};  ///< which global groups can replace missing ones
};

/// Parts that a load leaves out on purpose. The members correspond to Megatron's options.
struct LoadChoice {
  /// False for no-load-optim: masters are made from the weights, and the schedule starts afresh.
  bool optimizer = true;
  bool schedule = true;   ///< false for no-load-scheduler
  bool random = true;     ///< false for no-load-rng
  bool finetune = false;  ///< true to load only weights and start from iteration 0
  /// Modules that may be missing in the checkpoint; they then start with fresh values.
  std::vector<std::string> adds = {};
  std::vector<std::string> drops = {};  ///< modules of the checkpoint that the job may lack

  friend bool operator==(const LoadChoice&, const LoadChoice&) = default;
};

struct JobHardware {
  std::string device = "localhost:0";        ///< device of this rank, as "node:index"
  std::int32_t ranks_per_node = 0;           ///< 0 if all ranks are on one node
  Processor* processor = &host_processor();  ///< owner of the arrays' memory; must outlive the job
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

/// Returns the modules of a job, with their ranks. For a job that trains one model, returns a
/// single module with an empty name.
std::vector<ModuleConfig> modules_of(const JobConfig& config);

}  // namespace reprise::sim
