#pragma once
// The common state of a checkpoint, as Megatron lays it out, from and to a job's Progress.
//
//   {args: {...}, checkpoint_version: 3.0, iteration, optimizer: {optimizer: {param_groups: [...]},
//    grad_scaler: {...}, param_state_sharding_type}, opt_param_scheduler: {...},
//    content_metadata: {distrib_optim_sharding_type}, reprise: {run, parent_step, engine}}

#include <optional>
#include <string>
#include <vector>

#include "core/state/value.hpp"
#include "sim/job/layout.hpp"
#include "sim/job/progress.hpp"

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
  std::string model;
  Layout layout;  ///< under which it was saved
  std::string optimizer_sharding = "fully_reshardable";
  RunIdentity identity;
  SaveParts parts = {};

  friend bool operator==(const CommonState&, const CommonState&) = default;
};

/// Without the optimizer neither `optimizer` nor `opt_param_scheduler` is there, and
/// `args` says `no_save_optim`; likewise `no_save_rng`.
Value encode(const CommonState& state);
/// MISSING_KEY_ON_LOAD names the first entry that is not there or is of another type; UNSUPPORTED
/// for another checkpoint version or another number of parameter groups.
/// What was left out on purpose is as in a default-constructed state.
CommonState decode_common(const Value& common);

/// What of it is the same however the job was laid out and whoever wrote it: without the parallel
/// sizes of `args` and what it says of parts that were left out, the optimizer's sharding,
/// `rerun_state_machine`, `content_metadata` and `reprise`. For digests and for judging two jobs.
Value layout_free(const Value& common);

}  // namespace reprise::sim
