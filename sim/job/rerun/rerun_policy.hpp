#pragma once
// Defines the decisions of the rerun machine. Each of them is a pure function. A
// default-constructed policy decides correctly; a mutant replaces some of its functions.
//
//   state                     votes of all ranks      next                  then
//   0 NOT_RUNNING_YET         -                       1                     run
//   1 INITIAL_RUN             none                    0                     update
//   1                         rerun                   2                     rewind, run
//   2 RERUNNING_IN_PLACE      continue                0                     update
//   2                         checkpoint              3                     rewind, save, exit 16
//   2                         neither                 2                     rewind, exit 17
//   3 WILL_RERUN              -                       4                     run
//   4 RERUNNING_FROM          restart again           5                     exit 16
//   4                         continue                0                     update
//   4                         neither                 4                     exit 17

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/state.hpp"
#include "reprise/tensor.hpp"
#include "sim/job/model/data_iterator.hpp"
#include "sim/job/modules/module_config.hpp"
#include "sim/job/rerun/rerun_state.hpp"

namespace reprise::sim {

// --- running ------------------------------------------------------------------------------------

/// Names of the rules by which a result is rejected.
inline constexpr std::string_view kNaNRule = "NaN";
inline constexpr std::string_view kInfinityRule = "infinity";
inline constexpr std::string_view kSpikeRule = "spike";
/// True for all rules except kSpikeRule. If a re-run reproduces a spike, the job accepts it and
/// continues.
bool fatal_unless_spike(std::string_view rule);

/// Decision at the end of a run.
struct RunEnd {
  RerunState next = RerunState::kNotRunningYet;
  bool again = false;   ///< true to run the iteration once more
  bool rewind = false;  ///< true to restore random streams and data to the start of the iteration
};
/// Decides what follows a run. Called in the states in which a run can end: 1, 2 and 4; throws
/// USAGE in others.
RunEnd end_of_run(RerunState state, RerunMode mode, RerunVotes world);

/// A result that was rejected in the initial run and computed again in a later run.
struct Reached {
  RerunState state = RerunState::kRerunningInPlace;  ///< rerunning in place or from a checkpoint
  bool reproduced = false;  ///< true if the results agree within the tolerance
  bool fatal = true;
  bool same_device = false;  ///< true if this run used the device of the suspicious run
};
RerunVotes judge_again(const Reached& reached);

/// How the job exits between iterations.
struct Leaving {
  int code = 0;
  bool save = false;  ///< true to save before the exit
};
/// Returns how the job must exit, or nothing if it continues. Considers the votes of the last run
/// only if the machine is disabled.
std::optional<Leaving> leave_or_go_on(RerunState state, RerunMode mode, RerunVotes world);

/// Functions that restore the state from the start of the iteration. They are called before the
/// iteration is run again, and before a fault checkpoint.
struct Rewinding {
  bool again = false;  ///< true if the iteration is run again; false if the job exits
  std::function<void()> host;
  std::function<void()> device;
  std::function<void()> tracker;
  std::function<void()> data;
};
struct RewindStep {
  std::string_view name;
  std::function<void()> run;
};
/// Returns the steps of a rewind:
///
///   restore_host     restores the host's streams as they were before the initial run
///   restore_device   restores the devices' streams
///   restore_tracker  restores the streams that model-parallel ranks track
///   rewind_data      goes back to the first batch of this iteration
std::vector<RewindStep> rewind_protocol(const Rewinding& rewinding);

// --- saving -------------------------------------------------------------------------------------

/// True for NOT_RUNNING_YET and WILL_RERUN_FROM_CHECKPOINT, the only states that a checkpoint may
/// contain.
bool may_be_persisted(RerunState state);
/// True if a save includes the rerun objects. The machine must be enabled and the format
/// torch_dist; the machine's state does not matter.
bool emits(RerunMode mode, RerunState state, CheckpointFormat format);
/// True if the object must contain the batches of the iteration, because the iteration is run again
/// after a load. Only wrapped iterators keep these batches. Between iterations, no batches are
/// needed.
bool holds_batches(RerunState state);
/// True if this iteration reports statistics. In the mode that compares runs, every second
/// iteration does.
bool reports_at(RerunMode mode, std::int64_t iteration);

/// Returns a separate coordinate for each rank's object, because each rank knows only its own
/// faults.
ObjectPlace place_by_rank(const Layout& layout, GroupRank place, std::int32_t world);

// --- loading ------------------------------------------------------------------------------------

/// State of the rerun machine in a checkpoint, and the modules that saved it.
struct StoredRerun {
  RerunMode mode = RerunMode::kValidateResults;
  RerunState state = RerunState::kNotRunningYet;
  std::int64_t iteration = 0;
  std::vector<ModuleConfig> modules;
};
/// Mode and modules of the job that loads the state.
struct OwnRerun {
  RerunMode mode = RerunMode::kDisabled;
  std::vector<ModuleConfig> modules;
};

/// Decides if the template requests this rank's object. Returns true for any mode, state and
/// format, so that a load requests everything that was saved.
bool ask_always(const StoredRerun& stored, const OwnRerun& own);

/// Decides if a load with RerunTemplate::kForced requests the job's own objects regardless of the
/// checkpoint. Returns true. A checkpoint without the objects is then refused; without kForced, the
/// job would continue without them.
bool force_always(RerunMode mode, CheckpointFormat format);

/// Decides if a job uses a stored rerun state. False if the job loads only weights, for example
/// from a release.
bool unless_weights_alone(bool weights_alone);

struct Restoring {
  bool restore = false;
  std::string note;  ///< message for the operator; may be empty
};
/// Decides if a stored state is restored. A pending state is restored if the grids are the same and
/// the job's machine is not disabled; otherwise the state is ignored, and `note` gives the reason.
/// An idle state is not restored. Throws ILLEGAL_STATE_PERSISTED for a state that can't be resumed.
Restoring restore_or_ignore(const StoredRerun& stored, const OwnRerun& own);

/// Inputs for deciding which batches the first run after a load uses.
struct LoadedData {
  bool restored = false;              ///< true if the machine was restored
  const Value* object = nullptr;      ///< this rank's object; null if not loaded
  std::int64_t consumed_samples = 0;  ///< data cursor of the checkpoint
};
/// If the machine was restored, the batches come first from the stored buffers, then from the
/// source. Otherwise they come from the source, starting at the cursor, and the buffers are
/// dropped.
DataPosition buffers_or_cursor(const LoadedData& loaded);
/// Returns the batches in a rank's object. Throws LOAD_REJECTED if the object does not have the
/// right form.
std::vector<SampleRange> batches_of(const Value& object);

/// Returns a warning that the job makes no progress: it is about to run an iteration again from a
/// checkpoint, and has already done so `before` times. Returns "" if `before` is 0.
std::string say_no_progress(std::int64_t iteration, std::int64_t before);

struct RerunPolicy {
  bool (*fatal)(std::string_view rule) = fatal_unless_spike;
  RunEnd (*end)(RerunState, RerunMode, RerunVotes) = end_of_run;
  RerunVotes (*judged)(const Reached&) = judge_again;
  std::optional<Leaving> (*leaving)(RerunState, RerunMode, RerunVotes) = leave_or_go_on;
  std::vector<RewindStep> (*rewind)(const Rewinding&) = rewind_protocol;
  bool (*persisted)(RerunState) = may_be_persisted;
  bool (*emitted)(RerunMode, RerunState, CheckpointFormat) = emits;
  bool (*batches)(RerunState) = holds_batches;
  bool (*reported)(RerunMode, std::int64_t) = reports_at;
  bool (*forced)(RerunMode, CheckpointFormat) = force_always;
  ObjectPlace (*placed)(const Layout&, GroupRank, std::int32_t) = place_by_rank;
  bool (*asked)(const StoredRerun&, const OwnRerun&) = ask_always;
  bool (*concerned)(bool weights_alone) = unless_weights_alone;
  Restoring (*restored)(const StoredRerun&, const OwnRerun&) = restore_or_ignore;
  DataPosition (*data)(const LoadedData&) = buffers_or_cursor;
  std::string (*guard)(std::int64_t, std::int64_t) = say_no_progress;
};

}  // namespace reprise::sim
