#pragma once
// Converts the common state of a checkpoint, in Megatron's form, from and to a job's
// TrainingProgress.
//
//   {args: {...}, checkpoint_version: 3.0, iteration, optimizer: {...}, opt_param_scheduler: {...},
//    content_metadata: {distrib_optim_sharding_type}, reprise: {run, parent_step, engine}}
//
// For a job with modules, `args` has a dict per module instead of one model's sizes. There is no
// `optimizer` then: rank 0 writes the common state and may have no part of a module (see
// module_state.hpp).

#include <optional>
#include <string>
#include <vector>

#include "reprise/value.hpp"
#include "sim/job/modules/content_metadata.hpp"
#include "sim/job/modules/module_config.hpp"
#include "sim/job/optimizer/optimizer_entry.hpp"

namespace reprise::sim {

inline constexpr double kCheckpointVersion = 3.0;

/// Identity of the run that wrote a checkpoint.
struct RunIdentity {
  std::string run = "run";
  std::optional<std::int64_t> parent_step;  ///< step of the checkpoint that this life loaded
  std::string engine = "reprise";           ///< name and version of the writer
  /// Keys that a reader may skip if it does not know them.
  std::vector<std::string> optional = {};

  friend bool operator==(const RunIdentity&, const RunIdentity&) = default;
};

/// Parts of the training state that a save stores in addition to the weights.
struct SaveParts {
  bool optimizer = true;  ///< true to include the optimizer, schedule and loss scale
  bool random = true;

  friend bool operator==(const SaveParts&, const SaveParts&) = default;
};

struct CommonState {
  TrainingProgress progress;
  /// Modules of the saving job. Only the settings that decide how a checkpoint is read are set.
  std::vector<ModuleConfig> modules;
  OptimizerSettings optimizer;  ///< set only for a job that is one model
  RunIdentity identity;
  SaveParts parts = {};
  std::optional<Group> dp_cp_group = {};  ///< dp_cp_group of the metadata; empty after a read

  bool is_one_model() const { return modules.size() == 1 && modules.front().name.empty(); }

  friend bool operator==(const CommonState&, const CommonState&) = default;
};

/// Encodes the common state. If the optimizer is left out, omits `optimizer` and
/// `opt_param_scheduler` and sets `no_save_optim` in `args`; if random states are left out, sets
/// `no_save_rng`.
Value encode(const CommonState& state, Value (*metadata)(const ContentMetadata&) = stripped);
/// Throws NOT_STORED for the first entry that is missing or has another type; throws UNSUPPORTED
/// for a different checkpoint version. Parts that were left out on purpose have default values.
CommonState decode_common(const Value& common);

/// Returns the part of `common` that depends neither on the layout nor on the writer. Digests and
/// comparisons of two jobs use it. Omits from `args` the parallel sizes, the ranks, and the flags
/// for omitted parts. Omits the optimizers' shardings, `rerun_state_machine`, `content_metadata`
/// and `reprise`. Orders parameter groups by their identifiers.
Value layout_free(const Value& common);

}  // namespace reprise::sim
