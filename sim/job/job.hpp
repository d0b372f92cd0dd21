#pragma once
// The simulated training job of one rank: one model, or several modules on grids of their own.
// Training is elementwise and exact: the global state after n steps is the same bit for bit under
// every layout, and depends on every tensor and number that ranks share; random streams move their
// own tally alone.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/content_metadata.hpp"
#include "sim/job/group_registry.hpp"
#include "sim/job/megatron_common.hpp"
#include "sim/job/module_keys.hpp"
#include "sim/job/policy.hpp"
#include "sim/job/rerun_machine.hpp"

namespace reprise::sim {

/// A result that a rank reports of a run.
struct ResultCall {
  std::int64_t iteration = 0;  ///< being tried; the first is 1
  int call = 0;                ///< 0: the loss, 1: the norm of the gradients
  int run = 0;                 ///< 0: the initial run, 1: a re-run
};

/// By what a load decides whether it asks for this rank's rerun object.
enum class RerunTemplate : std::uint8_t {
  kAsStored,  ///< by the checkpoint's common state
  kForced,    ///< it asks, whatever the checkpoint holds
};

/// Of the rerun machine, beside its mode.
struct RerunOptions {
  CheckpointFormat format = CheckpointFormat::kTorchDist;
  RerunTemplate asks = RerunTemplate::kAsStored;
  Wrapping iterators = Wrapping::kWrapped;
  double tolerance = 0;  ///< relative, of reproduced results
  LargeValues::Limits large = {};
  ErrorInjector injector = {};
  std::string job_id = "N/A";           ///< of this life, in the log of rejected results
  std::vector<std::string> log = {};    ///< lines of earlier lives
  std::vector<std::int64_t> skip = {};  ///< numbers of iterations that only consume their samples
};

/// What a load leaves behind on purpose: the field's options of these names.
struct LoadChoice {
  bool optimizer = true;  ///< no-load-optim: masters are made of the weights, the schedule is fresh
  bool schedule = true;   ///< no-load-scheduler
  bool random = true;     ///< no-load-rng
  bool finetune = false;  ///< weights alone, and from iteration 0
  std::vector<std::string> adds = {};   ///< modules that the checkpoint lacks: they begin anew
  std::vector<std::string> drops = {};  ///< modules that it has and this job has not

  friend bool operator==(const LoadChoice&, const LoadChoice&) = default;
};

struct JobConfig {
  std::string model = "gpt-tiny";
  Layout layout;
  /// The ranks of the job in the layout's order; none: all of the fabric's, 0 .. n-1.
  std::vector<GlobalRank> ranks = {};
  std::uint64_t seed = 1;  ///< of start values, data and random streams; a load replaces it
  Schedule schedule;
  Sharding optimizer_sharding = Sharding::kFullyReshardable;
  std::size_t shard_dim = 0;             ///< that the optimizer's boxes are cut along
  std::int32_t ranks_per_node = 0;       ///< 0: all on one node
  std::string run = "run";               ///< identity that is written, and expected when loading
  std::string engine = "reprise";        ///< name and version that is written
  std::vector<std::string> adopts = {};  ///< other runs whose checkpoints are taken all the same
  GroupSource groups = {};               ///< what saves and loads are given
  RegistryUse fallback = {};             ///< to global groups, for those that are not given
  std::string rng_prefix = {};           ///< of the keys of random states
  RerunMode rerun = RerunMode::kDisabled;
  std::string device = "localhost:0";  ///< of this rank: "node:index"
  /// What this rank's device makes of a result; empty: what is right. The update goes by what is
  /// right, whatever is reported.
  std::function<double(const ResultCall&, double right)> result = {};
  RerunOptions rerun_options = {};
  bool knows_rerun = true;  ///< validates, reads the state of reruns; older jobs did neither
  /// If there are any, `model`, `layout`, `ranks` and `optimizer_sharding` above are not used.
  std::vector<ModuleConfig> modules = {};
  double clip_grad = 0;               ///< largest norm of gradients over all modules; 0: any
  bool random_by_dp = false;          ///< random streams begin otherwise on each rank of dp x cp
  bool plain_first = false;           ///< the order of an optimizer's parameter groups
  KeyForm keys = KeyForm::kPrefixed;  ///< in which modules' keys are written
  LoadChoice load = {};
  Processor* processor = &host_processor();  ///< that has the arrays; outlives the job
};

/// Those of a job, with their ranks: a job that is one model has one without a name.
std::vector<ModuleConfig> modules_of(const JobConfig& config);

struct StepRecord {
  Step step;                 ///< iterations completed after it
  std::int64_t loss = 0;     ///< over the whole model, in units of 2^-20; same under every layout
  double lr = 0;             ///< that the step used
  double loss_scale = 0;     ///< that the step used; with modules the first one's
  bool overflow = false;     ///< the update was skipped
  bool skipped = false;      ///< the whole iteration was, but for its samples
  double gradient_norm = 0;  ///< over all modules, before clipping
  std::int64_t zeros = 0;    ///< gradients
  std::vector<double> scales = {};  ///< of all modules' losses, in the order of their names

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

/// What is known of a checkpoint before it is loaded.
struct Stored {
  const Value* common = nullptr;     ///< nullptr: it is taken to be of this layout and sharding
  const Catalog* catalog = nullptr;  ///< nullptr: keys and shapes are taken to be as today's
  bool release = false;              ///< of weights alone, whatever else it holds
};

/// What a load is asked for.
struct LoadRequest {
  StateDict wanted;  ///< leaves point into the job's memory
  std::vector<std::string>
      excused;                     ///< keys that stay behind on purpose, for LoadSettings::excused
  std::vector<std::string> notes;  ///< why, one line for each decision
};

class TrainingJob {
 public:
  /// Collective over the job's ranks, which are its world; other ranks of the fabric have no part
  /// in it. Throws LAYOUT_MISMATCH if there are not as many ranks as the layout has places, or one
  /// is not in the fabric, USAGE on a rank that is none of them, UNSUPPORTED for what the model
  /// cannot be cut into.
  TrainingJob(JobConfig config, Fabric& fabric, JobPolicy policy = {});
  /// The job goes on as another: with other modules, or with less of what `before` holds, as
  /// config.load says. As if it had saved and this one had loaded it, without a checkpoint: on a
  /// world of one rank.
  TrainingJob(JobConfig config, Fabric& fabric, TrainingJob&& before);

  const JobConfig& config() const { return config_; }
  GlobalRank rank() const { return rank_; }
  /// All ranks of the job: in the layout's order, with modules ascending.
  const Group& members() const { return world_->group(); }
  /// Those of which this rank has a part.
  std::span<const Module> modules() const { return modules_; }
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
  JobGroups own_groups() const;
  JobGroups given_groups() const;
  /// What the job hands to a save. Leaves point into the job's memory and hold until the next call
  /// that changes it. Collective over the world, which first agrees on the groups: USAGE or
  /// GLOBAL_FALLBACK as resolve() says, LAYOUT_MISMATCH if ranks or metadata disagree on one; the
  /// same on all ranks.
  StateDict state() { return state(SaveParts{}); }
  StateDict state(const SaveParts& parts) { return state(given_groups(), parts); }
  StateDict state(const JobGroups& given, const SaveParts& parts = {});
  /// What to ask of a checkpoint. The sharding of the checkpoint decides how it is read. Random
  /// states are asked for only where their grids are the same, a padded vocabulary in the shape
  /// that it is stored in. FOREIGN_CHECKPOINT for another run's, unless JobConfig::adopts names it
  /// (a note then says so), or another model's; LAYOUT_MISMATCH for dp_reshardable state of other
  /// model-parallel sizes, UNSUPPORTED for a sharding that this job can't read, NOT_STORED
  /// or NOT_REQUESTED for modules that one side lacks unless JobConfig::load names them; the
  /// same on all ranks. Groups as for state(). What was left out of a checkpoint, or is left
  /// behind, is not asked for, and starts anew: masters from the weights.
  LoadRequest load_request(const Stored& stored, const JobGroups& given);
  LoadRequest load_request(const Stored& stored) { return load_request(stored, given_groups()); }
  LoadRequest load_request(const Value* stored_common = nullptr) {
    return load_request(Stored{.common = stored_common});
  }
  StateDict load_template(const Value* stored_common = nullptr) {
    return load_request(stored_common).wanted;
  }
  /// All tensors stand elsewhere from here on, with the same content; leaves that were handed out
  /// point to what was there.
  void reallocate();
  /// Where this rank's arrays are, with those of a load that are converted after it and those that
  /// others took the place of. Addresses are the processor's.
  std::vector<ByteSpan> memory();
  /// Boxes of this rank's leaf of that key whose bytes mean nothing: padding of buckets.
  std::vector<Box> padding_of(const std::string& key) const;
  /// Collective over the world, after the template was filled: takes common state and objects, then
  /// runs the refresh protocol. FOREIGN_CHECKPOINT for another run's or model's,
  /// NOT_STORED for common state that lacks something, STALE_DERIVED if weights and
  /// masters disagree; the same on all ranks, and the job may not go on after it.
  void take(StateDict& loaded);

 private:
  /// How the leaves of a module are made: by which decisions, and by which groups.
  struct Making {
    const JobPolicy& policy;
    Module& module;
    CheckpointGroups groups;  ///< their dp_cp_group is that of the metadata
    ContentMetadata metadata;
    ModuleKeys keys;
    SaveParts parts = {};
    const Catalog* catalog = nullptr;  ///< of the checkpoint that is asked
    /// For jobs to be compared: without what pads a vocabulary, of random streams this rank's own.
    bool model_space = false;
  };
  Module make_module(const ModuleConfig& config, Fabric& fabric) const;
  Family make_family(MeshKind kind, const Module& module, Fabric& fabric) const;
  OptimizerSettings fresh_settings(const Module& module, const Family& family) const;
  /// As at the start of a job of that seed.
  void start_anew(Module& module, std::uint64_t seed) const;
  void start_streams_anew(Module& module, std::uint64_t seed) const;

  // job_state.cpp
  /// What a save or a load goes by in each module: metadata, and groups that have their
  /// dp_cp_group from these.
  struct Basis {
    JobGroups groups;
    std::vector<ContentMetadata> metadata;

    void add(CheckpointGroups of_module, ContentMetadata told);
  };
  JobGroups groups_for(KeyForm keys) const;
  /// By this job's own groups, as is right.
  Basis own_basis(KeyForm keys) const;
  /// Resolves what was given and agrees on it with all ranks; `common` is that of the checkpoint
  /// which a load asks.
  Basis agreed_basis(std::string_view caller, const JobGroups& given, const Value* common) const;
  Making making_of(const JobPolicy& policy, std::size_t module, const Basis& basis, KeyForm keys,
                   const SaveParts& parts = {});
  StateDict leaves(const JobPolicy& policy, const Basis& basis, const SaveParts& parts);
  StateDict module_leaves(const Making& making, Value& common) const;
  /// Which of a policy's describing functions.
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
  /// What is left of an optimizer's entry once its objects are taken out.
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
  /// Without a look at what is stored, which is only told of.
  void force_rerun(LoadRequest& request, const Value* common) const;
  void request_rerun(LoadRequest& request, const Value* common) const;
  void take_rerun(const StateDict& loaded, const CommonState& stored);

  JobConfig config_;
  JobPolicy policy_;
  GlobalRank rank_;
  std::vector<ModuleConfig> all_modules_;  ///< of the job; this rank may have a part in some alone
  std::shared_ptr<Communicator> world_;
  std::vector<Module> modules_;
  Progress progress_;
  std::optional<std::int64_t> parent_step_;
  LoadChoice taking_;  ///< what was last asked for
  RerunMachine machine_;
  DataIterator data_;
  std::vector<AppliedSamples> applied_;
  std::vector<Moved> moved_;  ///< in order
};

}  // namespace reprise::sim
