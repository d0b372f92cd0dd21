#pragma once
// An independent judge that reads the store between lives.

#include "driver/language/scenario.hpp"
#include "driver/record/history.hpp"
#include "properties/ruling.hpp"
#include "reprise/store.hpp"

namespace reprise::driver {

/// Judges the store after a life. `past` holds the saves so far.
///
///   COMMIT_MISSING          a save ended well, but the tracker has an older one, or none
///   TRACKER_DANGLING        the tracker refers to a checkpoint that is missing or not whole
///   LAST_GOOD_DELETED       a checkpoint that had to be kept is missing or not whole. Those that
///                           are newer than the tracker's had to be kept, and those with fewer than
///                           `keep` newer ones up to the tracker's, not counting checkpoints that
///                           were found damaged
///   RETENTION_EXCEEDED      a checkpoint is left that has `keep` newer ones, not counting those
///                           that the last life to save may have skipped
///   ILLEGAL_STATE_PERSISTED the rerun machine's state is neither idle nor waiting for a re-run
///
/// Skips checkpoints that were damaged on purpose.
Rulings judge_store(Store& store, const CheckpointPlan& plan, const Past& past);

}  // namespace reprise::driver
