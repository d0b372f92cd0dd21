#pragma once
// The decisions of the rerun machine, each a pure function. A default-constructed policy is right;
// a mutant swaps a function.
//
//   state                     votes of all ranks      next                      then
//   0 NOT_RUNNING_YET         -                       1                         run
//   1 INITIAL_RUN             none                    0                         update
//   1                         rerun                   2                         rewind, run
//   2 RERUNNING_IN_PLACE      continue                0                         update
//   2                         checkpoint              3                         rewind, save, exit
//   16 2                         neither                 2                         rewind, exit 17
//   3 WILL_RERUN              -                       4                         run
//   4 RERUNNING_FROM          restart again           5                         exit 16
//   4                         continue                0                         update
//   4                         neither                 4                         exit 17

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/state.hpp"
#include "reprise/tensor.hpp"
#include "sim/job/data_iterator.hpp"
#include "sim/job/module_config.hpp"
#include "sim/job/rerun_state.hpp"

namespace reprise::sim {

// --- running ------------------------------------------------------------------------------------

/// Rules by which a result is rejected.
inline constexpr std::string_view kNaNRule = "NaN";
inline constexpr std::string_view kInfinityRule = "infinity";
inline constexpr std::string_view kSpikeRule = "spike";
/// True of all rules but the spike's, which is trained on where it comes again.
bool fatal_unless_spike(std::string_view rule);

/// At the end of a run.
struct RunEnd {
  RerunState next = RerunState::kNotRunningYet;
  bool again = false;   ///< run the iteration once more
  bool rewind = false;  ///< put random streams and data back to where the iteration began
};
/// Of the states in which a run can end: 1, 2, 4; else USAGE.
RunEnd end_of_run(RerunState state, RerunMode mode, RerunVotes world);

/// A result that was rejected in the initial run, reached again in a later one.
struct Reached {
  RerunState state = RerunState::kRerunningInPlace;  ///< or kRerunningFromCheckpoint
  bool reproduced = false;                           ///< within the tolerance
  bool fatal = true;
  bool same_device = false;  ///< as in the run that made it suspicious
};
RerunVotes judge_again(const Reached& reached);

/// How the job leaves, if it does, between iterations.
struct Leaving {
  int code = 0;
  bool save = false;  ///< first
};
/// The votes of the last run count in mode disabled alone.
std::optional<Leaving> leave_or_go_on(RerunState state, RerunMode mode, RerunVotes world);

/// What is put back before an iteration is run again, and before a fault checkpoint.
struct Rewinding {
  bool again = false;  ///< the iteration is run again; else the job leaves
  std::function<void()> host;
  std::function<void()> device;
  std::function<void()> tracker;
  std::function<void()> data;
};
struct RewindStep {
  std::string_view name;
  std::function<void()> run;
};
///   restore_host     the host's streams as they were before the initial run
///   restore_device   the devices'
///   restore_tracker  those that model-parallel ranks track
///   rewind_data      the batches of this iteration, from the first
std::vector<RewindStep> rewind_protocol(const Rewinding& rewinding);

// --- saving -------------------------------------------------------------------------------------

/// 0 and 3.
bool may_be_persisted(RerunState state);
/// In the enabled modes and format torch_dist, whatever the state.
bool emits(RerunMode mode, RerunState state, CheckpointFormat format);
/// Whether the object has the batches of the iteration in it, which only wrapped iterators keep:
/// where it is to be run again, and so not between iterations.
bool holds_batches(RerunState state);
/// Every second iteration, where runs are compared.
bool reports_at(RerunMode mode, std::int64_t iteration);

/// One place for each rank: what a rank knows of a fault, no other rank knows.
ObjectPlace place_by_rank(const Layout& layout, GroupRank place, std::int32_t world);

// --- loading ------------------------------------------------------------------------------------

/// What a checkpoint says of its machine, and under which layout.
struct StoredRerun {
  RerunMode mode = RerunMode::kValidateResults;
  RerunState state = RerunState::kNotRunningYet;
  std::int64_t iteration = 0;
  std::vector<ModuleConfig> modules;
};
/// The job that loads it.
struct OwnRerun {
  RerunMode mode = RerunMode::kDisabled;
  std::vector<ModuleConfig> modules;
};

/// Whether the template asks for this rank's object: always, whatever mode, state and format, so
/// that what is saved is requested.
bool ask_always(const StoredRerun& stored, const OwnRerun& own);

/// Whether a template that is forced asks for it, of the job's own ranks, without a look at the
/// checkpoint: always. One that has none is then refused by name, where a job that looks at it does
/// without.
bool force_always(RerunMode mode, CheckpointFormat format);

/// Whether a job has anything to do with a stored state: not where it takes weights alone, as from
/// a release.
bool unless_weights_alone(bool weights_alone);

struct Restoring {
  bool restore = false;
  std::string note;  ///< for the operator; empty: nothing to say
};
/// A pending state is restored on the same grids unless the job is disabled; anything else of
/// it is ignored with a note. An idle one is not restored. ILLEGAL_STATE_PERSISTED for a state that
/// can't be resumed.
Restoring restore_or_ignore(const StoredRerun& stored, const OwnRerun& own);

/// From where the batches of the next run are read.
struct LoadedData {
  bool restored = false;              ///< the machine was
  const Value* object = nullptr;      ///< this rank's, if it was loaded
  std::int64_t consumed_samples = 0;  ///< the data cursor of the checkpoint
};
/// Restored: from the buffers, and the source goes on behind them. Else from the cursor, and the
/// buffers are dropped. Never both.
DataPosition buffers_or_cursor(const LoadedData& loaded);
/// The batches in a rank's object. LOAD_REJECTED if it is not of that form.
std::vector<SampleRange> batches_of(const Value& object);

/// What the operator is told when an iteration is about to be re-run from a checkpoint for which
/// that was done before; `before` counts the restarts. Empty for none.
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
