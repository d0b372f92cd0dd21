#pragma once
// The simulated training job of one rank. Training is elementwise and exact: the global state after
// n steps is the same bit for bit under every layout, and depends on everything that a checkpoint
// keeps.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/ports/fabric.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/common_state.hpp"
#include "sim/job/host_rng.hpp"
#include "sim/job/layout.hpp"
#include "sim/job/policy.hpp"

namespace reprise::sim {

struct JobConfig {
  std::string model = "gpt-tiny";
  Layout layout;
  std::uint64_t seed = 1;  ///< of start values, data and random streams; a load replaces it
  Schedule schedule;
  std::string optimizer_sharding = "fully_reshardable";
  std::string run = "run";         ///< identity that is written, and expected when loading
  std::string engine = "reprise";  ///< name and version that is written
};

struct StepRecord {
  Step step;              ///< iterations completed after it
  std::int64_t loss = 0;  ///< over the whole model, in units of 2^-20; same under every layout
  double lr = 0;          ///< that the step used
  double loss_scale = 0;  ///< that the step used
  bool overflow = false;  ///< the update was skipped

  friend bool operator==(const StepRecord&, const StepRecord&) = default;
  friend std::ostream& operator<<(std::ostream& out, const StepRecord& record);
};

/// What a load is asked for.
struct LoadRequest {
  StateDict wanted;                  ///< leaves point into the job's memory
  std::vector<std::string> excused;  ///< keys that stay behind on purpose, for LoadOptions::excused
  std::vector<std::string> notes;    ///< why, one line for each decision
};

class TrainingJob {
 public:
  /// Collective over the world. Throws LAYOUT_MISMATCH if the fabric has another number of ranks
  /// than the layout, UNSUPPORTED for what the model cannot be cut into.
  TrainingJob(JobConfig config, Fabric& fabric, JobPolicy policy = {});

  const JobConfig& config() const { return config_; }
  GlobalRank rank() const { return rank_; }
  Step iteration() const { return {progress_.iteration}; }
  Communicator& world() { return *world_; }
  std::shared_ptr<Communicator> world_group() { return world_; }

  /// Collective over the world.
  StepRecord step();

  /// Everything that the job has, whatever the policy hands to a save: what judges look at.
  StateDict live_state();
  /// The whole training state by the model's own keys, each parameter's compute copy and its share
  /// of the optimizer, however a checkpoint keeps them: what is compared between jobs.
  StateDict model_space() { return live_state(); }
  /// All that a checkpoint is to hold. Leaves point into the job's memory and hold until the next
  /// call that changes it.
  StateDict state();
  /// What to ask of a checkpoint whose common state is `stored_common` (see Checkpoint::common);
  /// without it the checkpoint is taken to be of this layout. Random states are asked for only
  /// where (tp, pp) are the same.
  LoadRequest load_request(const Value* stored_common = nullptr);
  StateDict load_template(const Value* stored_common = nullptr) {
    return load_request(stored_common).wanted;
  }
  /// Collective over the world, after the template was filled: takes common state and objects, then
  /// runs the refresh protocol. FOREIGN_CHECKPOINT for another run's or model's,
  /// MISSING_KEY_ON_LOAD for common state that lacks something, STALE_DERIVED if weights and
  /// masters disagree; the same on all ranks, and the job may not go on after it.
  void take(StateDict& loaded);

 private:
  StateDict leaves();
  TensorLeaf leaf(std::string key, const LocalParameter& parameter) const;
  TensorLeaf weight_leaf(LocalParameter& parameter) const;
  TensorLeaf stored_leaf(LocalParameter& parameter) const;
  void add_optimizer_leaves(StateDict& state, LocalParameter& parameter) const;
  ObjectLeaf rng_leaf() const;
  Value common() const;
  void take_values(const StateDict& loaded);

  JobConfig config_;
  JobPolicy policy_;
  GlobalRank rank_;
  std::shared_ptr<const Mesh> mesh_;
  GroupRank member_;  ///< in mesh_
  std::shared_ptr<Communicator> world_;
  std::shared_ptr<Communicator> dp_;
  std::vector<LocalParameter> parameters_;
  Progress progress_;
  HostRng rng_;
  std::optional<std::int64_t> parent_step_;
};

}  // namespace reprise::sim
