#pragma once
// Simulates the training job of one rank: one model, or several modules on their own grids.
// Training is elementwise and exact: after n steps, the global state is the same bit for bit under
// every layout. The state depends on every tensor and on every number that ranks share. Random
// streams do not affect it; they change only hashes of their own.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/state/state_dict.hpp"
#include "sim/job/data/job_config.hpp"
#include "sim/job/data/job_data.hpp"
#include "sim/job/data/policy.hpp"
#include "sim/job/data/step_record.hpp"
#include "sim/job/load_request.hpp"
#include "sim/job/modules/megatron_common.hpp"

namespace reprise::sim {

class TrainingJob {
 public:
  /// Collective over the job's ranks, which form its world. Other ranks of the fabric do not take
  /// part. Throws LAYOUT_MISMATCH if the number of ranks differs from the layout's, or if one of
  /// the job's ranks is not in the fabric. Throws USAGE on a rank that is not one of the job's, and
  /// UNSUPPORTED if the layout can't split the model.
  TrainingJob(JobConfig config, Fabric& fabric, JobPolicy policy = {});
  /// Makes this job continue `before` without a checkpoint. The new job may have other modules;
  /// config.load says which parts of the state are left out. The result is as if `before` had saved
  /// and this job had loaded. Possible only on a world of one rank.
  TrainingJob(JobConfig config, Fabric& fabric, TrainingJob&& before);

  const JobConfig& config() const { return job_.config; }
  GlobalRank rank() const { return job_.rank; }
  /// Returns all ranks of the job: in the layout's order if the job is one model, otherwise in
  /// ascending order.
  const Group& members() const { return job_.world->group(); }
  /// Returns the modules of which this rank has a part.
  std::span<const Module> modules() const { return job_.modules; }
  Step iteration() const { return {job_.progress.iteration}; }
  Communicator& world() { return *job_.world; }
  std::shared_ptr<Communicator> world_group() { return job_.world; }

  /// Collective over the world: runs one iteration, with the re-runs that its results need. All
  /// ranks exit or continue together.
  StepOutcome advance();
  /// Runs one iteration, for callers that expect the job to continue. If the job must exit, that is
  /// an internal error.
  StepRecord step();
  const RerunMachine& rerun() const { return job_.machine; }
  /// Returns the samples that this life has trained on or skipped, in order.
  const std::vector<AppliedSamples>& applied_samples() const { return job_.applied; }

  /// Returns everything that a checkpoint of this job must contain, even if the policy omits parts.
  StateDict live_state() { return live_state(SaveParts{}); }
  StateDict live_state(const SaveParts& parts);
  /// Returns the whole training state with the model's own keys, so that judges can compare jobs.
  /// Each parameter has its compute copy and its share of the optimizer, whatever form the job's
  /// checkpoints have.
  StateDict model_space();
  /// own_groups() returns the job's own process groups. given_groups() returns the groups that its
  /// saves and loads use if a caller passes no others.
  JobGroups own_groups() const;
  JobGroups given_groups() const;
  /// Returns the state to save. Leaves point into the job's memory and stay valid until the next
  /// call that changes it. Collective over the world, which first agrees on the groups. Throws
  /// USAGE or GLOBAL_FALLBACK as resolve() does, and LAYOUT_MISMATCH if ranks or metadata disagree
  /// on a group. All ranks throw the same error.
  StateDict state() { return state(SaveParts{}); }
  StateDict state(const SaveParts& parts) { return state(given_groups(), parts); }
  StateDict state(const JobGroups& given, const SaveParts& parts = {});
  /// Returns the request for a checkpoint. First agrees on the groups, as state() does. The
  /// checkpoint's sharding decides how the checkpoint is read. Random states are requested only if
  /// the grids of job and checkpoint are equal. A padded vocabulary is requested in its stored
  /// shape. Parts that the checkpoint lacks, or that the load leaves out, are not requested and
  /// start fresh; masters then start from the weights.
  ///
  /// Throws the same error on all ranks. Throws FOREIGN_CHECKPOINT for a checkpoint of another
  /// model or another run. If JobIdentity::adopts lists the other run, adds a note to the request
  /// instead. Throws LAYOUT_MISMATCH for dp_reshardable state that was saved with other
  /// model-parallel sizes, and UNSUPPORTED for a sharding that this job can't read. Throws
  /// NOT_STORED for a module that the checkpoint lacks and NOT_REQUESTED for one that this job
  /// lacks, unless JobConfig::load lists the module.
  LoadRequest load_request(const Stored& stored, const JobGroups& given);
  LoadRequest load_request(const Stored& stored) { return load_request(stored, given_groups()); }
  LoadRequest load_request(const Value* stored_common = nullptr) {
    return load_request(Stored{.common = stored_common});
  }
  StateDict load_template(const Value* stored_common = nullptr) {
    return load_request(stored_common).wanted;
  }
  /// Moves all tensors to new memory with the same content. Leaves that were returned earlier still
  /// point to the old memory.
  void reallocate();
  /// Returns all memory of the job on this rank: its arrays, loaded arrays that are not converted
  /// yet, and the old memory of arrays that were moved. The addresses are those of the processor's
  /// memory.
  std::vector<ByteSpan> memory();
  /// Returns the boxes of this rank's leaf that contain only bucket padding. Their bytes are
  /// undefined.
  std::vector<Box> padding_of(const std::string& key) const;
  /// Collective over the world. Call it after the load has filled the template. Takes over common
  /// state and objects, then runs the refresh protocol. Throws FOREIGN_CHECKPOINT for a checkpoint
  /// of another run or model, NOT_STORED if the common state lacks an entry, and STALE_DERIVED if
  /// weights and masters disagree. All ranks throw the same error. The job is unusable after an
  /// error.
  void take(StateDict& loaded);

 private:
  JobData job_;
};

}  // namespace reprise::sim
