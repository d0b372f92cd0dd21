#pragma once
// The simulated training job of one rank: one model, or several modules on their own grids.
// Training is elementwise and exact: the global state after n steps is the same bit for bit under
// every layout, and depends on every tensor and number that ranks share. Random streams move only
// their own tally.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/job_config.hpp"
#include "sim/job/modules/content_metadata.hpp"
#include "sim/job/modules/megatron_common.hpp"
#include "sim/job/modules/module_keys.hpp"
#include "sim/job/policy.hpp"
#include "sim/job/rerun/rerun_machine.hpp"

namespace reprise::sim {

struct StepRecord {
  Step step;                 ///< number of completed iterations
  std::int64_t loss = 0;     ///< loss of the whole model in units of 2^-20; same under every layout
  double lr = 0;             ///< value that the step used
  double loss_scale = 0;     ///< value that the step used; with modules the first one's
  bool overflow = false;     ///< true if the update was skipped
  bool skipped = false;      ///< true if the iteration only consumed its samples
  double gradient_norm = 0;  ///< over all modules, before clipping
  std::int64_t zeros = 0;    ///< number of zero gradients
  std::vector<double> scales = {};  ///< loss scales of all modules, in the order of their names

  friend bool operator==(const StepRecord&, const StepRecord&) = default;
  friend std::ostream& operator<<(std::ostream& out, const StepRecord& record);
};

/// Result of trying an iteration.
struct StepOutcome {
  std::optional<StepRecord> record;  ///< nothing if the job leaves before the update
  std::optional<RerunExit> exit;     ///< set if the job must leave
  std::vector<std::string> notes;    ///< for the operator
};

/// Samples that an iteration used.
struct AppliedSamples {
  SampleRange samples;
  bool skipped = false;  ///< true: consumed without training

  friend bool operator==(const AppliedSamples&, const AppliedSamples&) = default;
};

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

class TrainingJob {
 public:
  /// Collective over the job's ranks, which are its world; other ranks of the fabric take no part.
  /// Throws LAYOUT_MISMATCH if the number of ranks differs from the layout's, or a rank is not in
  /// the fabric, USAGE on a rank that is not one of them, UNSUPPORTED if the model can't be cut
  /// this way.
  TrainingJob(JobConfig config, Fabric& fabric, JobPolicy policy = {});
  /// Continues `before` as another job: with other modules, or with part of its state, as
  /// config.load says. The result is as if `before` had saved and this one had loaded; only on a
  /// world of one rank.
  TrainingJob(JobConfig config, Fabric& fabric, TrainingJob&& before);

  const JobConfig& config() const { return config_; }
  GlobalRank rank() const { return rank_; }
  /// Returns all ranks of the job: in the layout's order, with modules ascending.
  const Group& members() const { return world_->group(); }
  /// Returns the modules of which this rank has a part.
  std::span<const Module> modules() const { return modules_; }
  Step iteration() const { return {progress_.iteration}; }
  Communicator& world() { return *world_; }
  std::shared_ptr<Communicator> world_group() { return world_; }

  /// Collective over the world: runs one iteration, with the re-runs that its results need. All
  /// ranks leave or continue together.
  StepOutcome advance();
  /// Runs an iteration of a job that has no reason to leave.
  StepRecord step();
  const RerunMachine& rerun() const { return machine_; }
  /// Returns the samples that this life has trained on or skipped, in order.
  const std::vector<AppliedSamples>& applied_samples() const { return applied_; }

  /// Returns everything that a checkpoint of this job must hold, whatever the policy passes on.
  StateDict live_state() { return live_state(SaveParts{}); }
  StateDict live_state(const SaveParts& parts);
  /// Returns the whole training state by the model's own keys, with each parameter's compute copy
  /// and its share of the optimizer, in whatever form checkpoints keep them: for comparing jobs.
  StateDict model_space();
  /// Return the job's own process groups, and those that its saves and loads use unless a caller
  /// passes others.
  JobGroups own_groups() const;
  JobGroups given_groups() const;
  /// Returns the state to save. Leaves point into the job's memory and stay valid until the next
  /// call that changes it. Collective over the world, which first agrees on the groups: USAGE or
  /// GLOBAL_FALLBACK as in resolve(), LAYOUT_MISMATCH if ranks or metadata disagree on one; the
  /// same on all ranks.
  StateDict state() { return state(SaveParts{}); }
  StateDict state(const SaveParts& parts) { return state(given_groups(), parts); }
  StateDict state(const JobGroups& given, const SaveParts& parts = {});
  /// Returns the request for a checkpoint. The checkpoint's sharding decides how it is read. Random
  /// states are requested only if their grids are equal, a padded vocabulary in its stored shape.
  /// FOREIGN_CHECKPOINT for another run's, unless JobIdentity::adopts names it (with a note), or
  /// another model's; LAYOUT_MISMATCH for dp_reshardable state of other model-parallel sizes;
  /// UNSUPPORTED for a sharding that this job can't read; NOT_STORED or NOT_REQUESTED for modules
  /// that one side lacks unless JobConfig::load names them; the same on all ranks. Groups as for
  /// state(). Parts that the checkpoint lacks or the load leaves out are not requested and start
  /// fresh: masters from the weights.
  LoadRequest load_request(const Stored& stored, const JobGroups& given);
  LoadRequest load_request(const Stored& stored) { return load_request(stored, given_groups()); }
  LoadRequest load_request(const Value* stored_common = nullptr) {
    return load_request(Stored{.common = stored_common});
  }
  StateDict load_template(const Value* stored_common = nullptr) {
    return load_request(stored_common).wanted;
  }
  /// Moves all tensors to new memory with the same content; leaves that were returned before still
  /// point to the old memory.
  void reallocate();
  /// Returns the memory of this rank's arrays, of loaded ones that are yet to be converted, and of
  /// replaced ones. Addresses are the processor's.
  std::vector<ByteSpan> memory();
  /// Returns the boxes of this rank's leaf whose bytes are undefined: padding of buckets.
  std::vector<Box> padding_of(const std::string& key) const;
  /// Collective over the world, after the template was filled: takes common state and objects, then
  /// runs the refresh protocol. FOREIGN_CHECKPOINT for another run's or model's, NOT_STORED if the
  /// common state lacks something, STALE_DERIVED if weights and masters disagree; the same on all
  /// ranks, and the job is unusable after an error.
  void take(StateDict& loaded);

 private:
  /// The decisions and groups that make the leaves of a module.
  struct Making {
    const JobPolicy& policy;
    Module& module;
    CheckpointGroups groups;  ///< groups with the dp_cp_group of the metadata
    ContentMetadata metadata;
    ModuleKeys keys;
    SaveParts parts = {};
    const Catalog* catalog = nullptr;  ///< catalog of the checkpoint to load
    /// For comparing jobs: without vocabulary padding, and only this rank's own random streams.
    bool model_space = false;
  };
  Module make_module(const ModuleConfig& config, Fabric& fabric) const;
  Family make_family(MeshKind kind, const Module& module, Fabric& fabric) const;
  OptimizerSettings fresh_settings(const Module& module, const Family& family) const;
  /// Resets the module to the start of a job with that seed.
  void start_anew(Module& module, std::uint64_t seed) const;
  void start_streams_anew(Module& module, std::uint64_t seed) const;

  // job_state.cpp
  /// Metadata and groups of each module in a save or a load; the groups have the metadata's
  /// dp_cp_group.
  struct Basis {
    JobGroups groups;
    std::vector<ContentMetadata> metadata;

    void add(CheckpointGroups of_module, ContentMetadata told);
  };
  JobGroups groups_for(KeyForm keys) const;
  /// Uses this job's own groups, as is right.
  Basis own_basis(KeyForm keys) const;
  /// Resolves the given groups and agrees on them with all ranks; `common` is the common state of
  /// the checkpoint to load.
  Basis agreed_basis(std::string_view caller, const JobGroups& given, const Value* common) const;
  Making making_of(const JobPolicy& policy, std::size_t module, const Basis& basis, KeyForm keys,
                   const SaveParts& parts = {});
  StateDict leaves(const JobPolicy& policy, const Basis& basis, const SaveParts& parts);
  StateDict module_leaves(const Making& making, Value& common) const;
  /// One of a policy's describing functions.
  using Describe = decltype(&JobPolicy::described_save);

  Holding holding_of(const Family& family, std::size_t parameter, const OptimizerShard* share,
                     const Making& making) const;
  CheckpointGroups groups_for(const ParameterSpec& spec, const Making& making) const;
  TensorLeaf leaf(const LocalParameter& parameter, const Description& description, DType dtype,
                  std::byte* data, const Making& making) const;
  static void fit_to_stored(TensorLeaf& leaf, const ParameterSpec& spec, const Making& making);
  void add_weights(StateDict& state, const Making& making) const;
  void add_stored(StateDict& state, Family& family, const Making& making, Describe described) const;
  void add_slots(StateDict& state, Family& family, Sharding keys, const Making& making,
                 Describe described) const;
  void add_buckets(StateDict& state, Family& family, OptimizerShard& optimizer) const;
  void add_random(StateDict& state, const Making& making) const;
  /// Returns the part of an optimizer's entry that remains after its objects are removed.
  Dict add_settings(StateDict& state, const Family& family, Sharding sharding,
                    const Making& making) const;
  Value common(const JobPolicy& policy, const Basis& basis, const SaveParts& parts = {}) const;
  ShareRule rule_of(Sharding sharding) const;
  void tell_streams();

  // job_load.cpp
  void request_module(LoadRequest& request, const ModuleConfig& from, Making& making);
  void request_weights(StateDict& wanted, const Making& making);
  void request_optimizer(StateDict& wanted, Sharding stored, const Making& making);
  void request_settings(StateDict& wanted, Sharding stored, const Making& making) const;
  void request_random(StateDict& wanted, const ModuleConfig& from, const Making& making) const;
  void leave_random(LoadRequest& request, std::span<const ModuleConfig> from, KeyForm keys) const;
  void leave_behind(LoadRequest& request, const SaveParts& saved,
                    std::span<const ModuleConfig> from, const Stored& stored) const;
  void take_values(const StateDict& loaded);
  void take_progress(const Progress& stored);
  void take_module(Module& module, const StateDict& loaded, const CommonState& stored);
  OptimizerEntry entry_of(const Module& module, const Family& family,
                          const StateDict& loaded) const;
  void take_settings(Module& module, const StateDict& loaded, const CommonState& stored);
  void take_random(Module& module, const StateDict& loaded, std::uint64_t seed);
  void go_on_as(Module& module, Module& before) const;

  // job_rerun.cpp
  void make_machine();
  StepRecord skip_iteration();
  std::int64_t own_loss(const Progress& at) const;
  void validate(std::string_view what, int call, double right);
  void validate_results(std::int64_t own, std::int64_t loss, const Progress& at);
  RunEnd run_once(Progress& at, std::int64_t& loss);
  void rewind(bool again);
  void report_statistics(std::vector<std::string>& notes);
  std::vector<ModuleStep> own_steps(const Progress& at, std::int64_t loss) const;
  std::size_t index_of(const Module& module) const;
  void update_own(const Progress& at, std::int64_t loss, const StepAgreement& agreed);
  StepRecord record_of(const Progress& at, std::int64_t loss, const StepAgreement& agreed) const;
  StepRecord update(const Progress& at, std::int64_t loss);
  bool emits_rerun() const;
  std::vector<std::string> optional_keys() const;
  void add_rerun(StateDict& state, const JobPolicy& policy) const;
  ObjectLeaf rerun_leaf(const RerunPolicy& policy) const;
  void announce_rerun(LoadRequest& request, const StoredRerun& stored) const;
  /// Does not look at the stored objects, only at the common state.
  void force_rerun(LoadRequest& request, const Value* common) const;
  void request_rerun(LoadRequest& request, const Value* common) const;
  void take_rerun(const StateDict& loaded, const CommonState& stored);

  JobConfig config_;
  JobPolicy policy_;
  GlobalRank rank_;
  std::vector<ModuleConfig> all_modules_;  ///< of the job; this rank may have parts of only some
  std::shared_ptr<Communicator> world_;
  std::vector<Module> modules_;
  Progress progress_;
  std::optional<std::int64_t> parent_step_;
  LoadChoice taking_;  ///< choice of the last request
  RerunMachine machine_;
  DataIterator data_;
  std::vector<AppliedSamples> applied_;
  std::vector<Moved> moved_;  ///< in the order of the moves
};

}  // namespace reprise::sim
