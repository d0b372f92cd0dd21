#pragma once
// The simulated training job of one rank. Training is elementwise and exact: the global state after
// n steps is the same bit for bit under every layout, and depends on every tensor and number that
// all ranks share; random streams move their own tally alone.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/ports/fabric.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/common_state.hpp"
#include "sim/job/content_metadata.hpp"
#include "sim/job/group_registry.hpp"
#include "sim/job/host_rng.hpp"
#include "sim/job/layout.hpp"
#include "sim/job/policy.hpp"
#include "sim/job/rerun_machine.hpp"

namespace reprise::sim {

/// A result that a rank reports of a run.
struct ResultCall {
  std::int64_t iteration = 0;  ///< being tried; the first is 1
  int call = 0;                ///< 0: the loss, 1: the norm of the gradients
  int run = 0;                 ///< 0: the initial run, 1: a re-run
};

/// Of the rerun machine, beside its mode.
struct RerunOptions {
  std::string format = "torch_dist";  ///< that checkpoints are saved in
  double tolerance = 0;               ///< relative, of reproduced results
  LargeValues::Limits large = {};
  ErrorInjector injector = {};
  std::string job_id = "N/A";           ///< of this life, in the log of rejected results
  std::vector<std::string> log = {};    ///< lines of earlier lives
  std::vector<std::int64_t> skip = {};  ///< numbers of iterations that only consume their samples
};

struct JobConfig {
  std::string model = "gpt-tiny";
  Layout layout;
  /// The ranks of the job in the layout's order; none: all of the fabric's, 0 .. n-1.
  std::vector<GlobalRank> ranks = {};
  std::uint64_t seed = 1;  ///< of start values, data and random streams; a load replaces it
  Schedule schedule;
  std::string optimizer_sharding = "fully_reshardable";  ///< see sharding.hpp
  std::size_t shard_dim = 0;             ///< that the optimizer's boxes are cut along
  std::int32_t ranks_per_node = 0;       ///< 0: all on one node
  std::string run = "run";               ///< identity that is written, and expected when loading
  std::string engine = "reprise";        ///< name and version that is written
  std::vector<std::string> adopts = {};  ///< other runs whose checkpoints are taken all the same
  GroupSource groups = GroupSource::kExplicit;  ///< what saves and loads are given
  Fallback fallback = Fallback::kAllowed;       ///< to global groups, where none are given
  std::string rng_prefix = {};                  ///< of the keys of random states
  RerunMode rerun = RerunMode::kDisabled;
  std::string device = "localhost:0";  ///< of this rank: "node:index"
  /// What this rank's device makes of a result; empty: what is right. The update goes by what is
  /// right, whatever is reported.
  std::function<double(const ResultCall&, double right)> result = {};
  RerunOptions rerun_options = {};
  bool knows_rerun = true;  ///< validates, reads the state of reruns; older jobs did neither
};

struct StepRecord {
  Step step;              ///< iterations completed after it
  std::int64_t loss = 0;  ///< over the whole model, in units of 2^-20; same under every layout
  double lr = 0;          ///< that the step used
  double loss_scale = 0;  ///< that the step used
  bool overflow = false;  ///< the update was skipped
  bool skipped = false;   ///< the whole iteration was, but for its samples

  friend bool operator==(const StepRecord&, const StepRecord&) = default;
  friend std::ostream& operator<<(std::ostream& out, const StepRecord& record);
};

/// What came of trying an iteration.
struct StepOutcome {
  std::optional<StepRecord> record;  ///< none if the job leaves before the update
  std::optional<RerunExit> exit;     ///< the job is to leave so; it may not go on
  std::vector<std::string> notes;    ///< for the operator
};

/// Samples that an iteration took.
struct AppliedSamples {
  SampleRange samples;
  bool skipped = false;  ///< taken, and not trained on

  friend bool operator==(const AppliedSamples&, const AppliedSamples&) = default;
};

/// What a load is asked for.
struct LoadRequest {
  StateDict wanted;                  ///< leaves point into the job's memory
  std::vector<std::string> excused;  ///< keys that stay behind on purpose, for LoadOptions::excused
  std::vector<std::string> notes;    ///< why, one line for each decision
};

class TrainingJob {
 public:
  /// Collective over the job's ranks, which are its world; other ranks of the fabric have no part
  /// in it. Throws LAYOUT_MISMATCH if there are not as many ranks as the layout has places, or one
  /// is not in the fabric, USAGE on a rank that is none of them, UNSUPPORTED for what the model
  /// cannot be cut into.
  TrainingJob(JobConfig config, Fabric& fabric, JobPolicy policy = {});

  const JobConfig& config() const { return config_; }
  GlobalRank rank() const { return rank_; }
  /// All ranks of the job, in the layout's order.
  const Group& members() const { return dense_mesh_->members(); }
  Step iteration() const { return {progress_.iteration}; }
  Communicator& world() { return *world_; }
  std::shared_ptr<Communicator> world_group() { return world_; }

  /// Collective over the world: one iteration, with the re-runs that its results need. All ranks
  /// leave or go on together.
  StepOutcome advance();
  /// An iteration of a job that has no reason to leave.
  StepRecord step();
  const RerunMachine& rerun() const { return machine_; }
  /// What this life has trained on or skipped, in order.
  const std::vector<AppliedSamples>& applied_samples() const { return applied_; }

  /// Everything that a checkpoint of this job is to hold, whatever the policy hands to a save.
  StateDict live_state() { return live_state(SaveParts{}); }
  StateDict live_state(const SaveParts& parts);
  /// The whole training state by the model's own keys, each parameter's compute copy and its share
  /// of the optimizer, however a checkpoint keeps them: what is compared between jobs.
  StateDict model_space();
  /// The job's own process groups, and those that its saves and loads are given unless they are
  /// given others.
  CheckpointGroups own_groups() const;
  CheckpointGroups given_groups() const;
  /// What the job hands to a save. Leaves point into the job's memory and hold until the next call
  /// that changes it. Collective over the world, which first agrees on the groups: USAGE or
  /// GLOBAL_FALLBACK as resolve() says, LAYOUT_MISMATCH if ranks or metadata disagree on one; the
  /// same on all ranks.
  StateDict state() { return state(SaveParts{}); }
  StateDict state(const SaveParts& parts) { return state(given_groups(), parts); }
  StateDict state(const CheckpointGroups& given, const SaveParts& parts = {});
  /// What to ask of a checkpoint whose common state is `stored_common` (see Checkpoint::common);
  /// without it the checkpoint is taken to be of this layout and sharding. The sharding of the
  /// checkpoint decides how it is read. Random states are asked for only where their grids are the
  /// same. FOREIGN_CHECKPOINT for another run's, unless JobConfig::adopts names it (a note then
  /// says so), or another model's; LAYOUT_MISMATCH for dp_reshardable state of other model-parallel
  /// sizes, UNSUPPORTED for a sharding that this job can't read; the same on all ranks. Groups as
  /// for state(). What was left out of a checkpoint is not asked for, and starts anew: masters from
  /// the weights.
  LoadRequest load_request(const Value* stored_common = nullptr) {
    return load_request(stored_common, given_groups());
  }
  LoadRequest load_request(const Value* stored_common, const CheckpointGroups& given);
  StateDict load_template(const Value* stored_common = nullptr) {
    return load_request(stored_common).wanted;
  }
  /// Boxes of this rank's leaf of that key whose bytes mean nothing: padding of buckets.
  std::vector<Box> padding_of(const std::string& key) const;
  /// Collective over the world, after the template was filled: takes common state and objects, then
  /// runs the refresh protocol. FOREIGN_CHECKPOINT for another run's or model's,
  /// MISSING_KEY_ON_LOAD for common state that lacks something, STALE_DERIVED if weights and
  /// masters disagree; the same on all ranks, and the job may not go on after it.
  void take(StateDict& loaded);

 private:
  /// How leaves are made: by which decisions, and by which groups.
  struct Making {
    const JobPolicy& policy;
    const CheckpointGroups& groups;
    ContentMetadata metadata;
    SaveParts parts = {};
  };
  /// Resolves what was given and agrees on it with all ranks.
  CheckpointGroups agreed_groups(std::string_view caller, const CheckpointGroups& given) const;
  ContentMetadata metadata_with(const CheckpointGroups& groups) const;
  StateDict leaves(const Making& making);
  /// Which of a policy's describing functions.
  using Describe = decltype(&JobPolicy::described_save);

  Holding holding_of(const Family& family, std::size_t parameter, const OptimizerShard* share,
                     const Making& making) const;
  TensorLeaf leaf(Description description, DType dtype, std::byte* data) const;
  void add_weights(StateDict& state, const Making& making);
  void add_stored(StateDict& state, Family& family, const Making& making, Describe described);
  void add_slots(StateDict& state, Family& family, Sharding keys, const Making& making,
                 Describe described);
  void add_buckets(StateDict& state, Family& family, OptimizerShard& optimizer) const;
  void add_random(StateDict& state, const Making& making) const;
  void request_weights(StateDict& wanted, const Making& making);
  void request_optimizer(StateDict& wanted, Sharding stored, const Making& making);
  void request_random(LoadRequest& request, const Layout& stored, const Making& making);
  Value common(const SaveParts& parts = {}) const;
  ShareRule rule_of(Sharding sharding) const;
  void take_values(const StateDict& loaded);
  void take_random(const StateDict& loaded, std::uint64_t seed);

  // job_rerun.cpp
  void make_machine();
  StepRecord skip_iteration();
  std::int64_t own_loss(const Progress& at) const;
  void validate(std::string_view what, int call, double right);
  void validate_results(std::int64_t own, std::int64_t loss, const Progress& at);
  RunEnd run_once(Progress& at, std::int64_t& loss);
  void rewind(bool again);
  void report_statistics(std::vector<std::string>& notes);
  StepRecord update(const Progress& at, std::int64_t loss);
  bool emits_rerun() const;
  std::vector<std::string> optional_keys() const;
  void add_rerun(StateDict& state, const JobPolicy& policy) const;
  ObjectLeaf rerun_leaf(const RerunPolicy& policy) const;
  void announce_rerun(LoadRequest& request, const StoredRerun& stored) const;
  void request_rerun(LoadRequest& request, const Value* common) const;
  void take_rerun(const StateDict& loaded, const CommonState& stored);

  JobConfig config_;
  JobPolicy policy_;
  Sharding sharding_;
  GlobalRank rank_;
  ModelSpec model_;
  std::shared_ptr<const Mesh> dense_mesh_;
  std::shared_ptr<const Mesh> expert_mesh_;
  std::shared_ptr<Communicator> world_;
  std::vector<Family> families_;
  Progress progress_;
  HostRng rng_;
  HostRng expert_rng_;
  std::string rng_prefix_;  ///< of the keys that were last asked for
  std::optional<std::int64_t> parent_step_;
  RerunMachine machine_;
  DataIterator data_;
  HostRng rng_before_;  ///< before the iteration's initial run
  HostRng expert_rng_before_;
  std::vector<AppliedSamples> applied_;
};

}  // namespace reprise::sim
