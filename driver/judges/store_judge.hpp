#pragma once
// An independent judge that reads the store between lives.

#include "driver/language/scenario.hpp"
#include "driver/record/history.hpp"
#include "properties/ruling.hpp"
#include "reprise/store.hpp"

namespace reprise::driver {

/// Judges the store after a life. `past` holds the saves so far.
///
///   COMMIT_MISSING          a save ended well, and the tracker names an older one, or none
///   TRACKER_DANGLING        the tracker names what is not there, or not whole
///   LAST_GOOD_DELETED       a checkpoint that was to be kept is not there, or not whole: one that
///                           is newer than the tracker says, or has fewer than `keep` newer ones
///                           up to it, without those that were found damaged
///   RETENTION_EXCEEDED      one is left that has `keep` newer ones; what the last life to save may
///                           have passed over does not count
///   ILLEGAL_STATE_PERSISTED the rerun machine's state is neither idle nor waiting for a re-run
///
/// Passes over checkpoints that were damaged on purpose.
Rulings judge_store(Store& store, const CheckpointPlan& plan, const Past& past);

}  // namespace reprise::driver
