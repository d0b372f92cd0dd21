#pragma once
// The common state of a checkpoint, as Megatron lays it out, from and to a job's Progress.
//
//   {args: {...}, checkpoint_version: 3.0, iteration, optimizer: {...}, opt_param_scheduler: {...},
//    content_metadata: {distrib_optim_sharding_type}, reprise: {run, parent_step, engine}}
//
// Of a job with modules `args` has a dict by module in place of one model's sizes, and there is no
// `optimizer`: rank 0, which writes this, need not own them (see module_state.hpp).

#include <optional>
#include <string>
#include <vector>

#include "reprise/value.hpp"
#include "sim/job/content_metadata.hpp"
#include "sim/job/module_config.hpp"
#include "sim/job/optimizer_entry.hpp"

namespace reprise::sim {

inline constexpr double kCheckpointVersion = 3.0;

/// Whose checkpoint it is.
struct RunIdentity {
  std::string run = "run";
  std::optional<std::int64_t> parent_step;  ///< the checkpoint this life of the job began from
  std::string engine = "reprise";           ///< name and version of what wrote it
  /// Keys that a reader who does not know them may leave behind.
  std::vector<std::string> optional = {};

  friend bool operator==(const RunIdentity&, const RunIdentity&) = default;
};

/// What of the training state a save is to hold besides the weights.
struct SaveParts {
  bool optimizer = true;  ///< with its schedule and loss scale
  bool random = true;

  friend bool operator==(const SaveParts&, const SaveParts&) = default;
};

struct CommonState {
  Progress progress;
  /// Under which it was saved; of their settings what decides how a checkpoint is read.
  std::vector<ModuleConfig> modules;
  OptimizerSettings optimizer;  ///< of a job that is one model
  RunIdentity identity;
  SaveParts parts = {};
  std::optional<Group> dp_cp_group = {};  ///< of the metadata; none in what was read

  bool is_one_model() const { return modules.size() == 1 && modules.front().name.empty(); }

  friend bool operator==(const CommonState&, const CommonState&) = default;
};

/// Without the optimizer neither `optimizer` nor `opt_param_scheduler` is there, and
/// `args` says `no_save_optim`; likewise `no_save_rng`.
Value encode(const CommonState& state, Value (*metadata)(const ContentMetadata&) = stripped);
/// NOT_STORED names the first entry that is not there or is of another type; UNSUPPORTED
/// for another checkpoint version. What was left out on purpose is as in a default-constructed
/// state.
CommonState decode_common(const Value& common);

/// What of it is the same however the job was laid out and whoever wrote it: without the parallel
/// sizes and ranks of `args` and what it says of parts that were left out, the optimizers'
/// shardings, `rerun_state_machine`, `content_metadata` and `reprise`, and with parameter groups in
/// the order of what they are known by. For digests and for judging two jobs.
Value layout_free(const Value& common);

}  // namespace reprise::sim
