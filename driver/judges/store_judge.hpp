#pragma once
// Judges the store between two lives, independently of what the ranks reported.

#include "driver/language/scenario.hpp"
#include "driver/record/history.hpp"
#include "driver/record/judged_store.hpp"
#include "properties/finding.hpp"

namespace reprise::driver {

/// Judges the store after a life. `past` holds the saves so far.
///
///   COMMIT_MISSING          a save succeeded, but the tracker names an older checkpoint or none
///   TRACKER_DANGLING        the tracker names a checkpoint that is missing or not whole
///   LAST_GOOD_DELETED       a checkpoint that had to be kept is missing or not whole
///   RETENTION_EXCEEDED      a checkpoint still exists although there are `keep` newer ones
///   ILLEGAL_STATE_PERSISTED the rerun machine's state is neither idle nor waiting for a re-run
///   KEYSET_ASYMMETRY        the optimizer's stored keys are not the model's times the slots
///   MIXED_GENERATION        a checkpoint holds payload that its metadata does not name: it is
///                           from another save
///
/// A checkpoint had to be kept if it is newer than the tracker's, or if there are fewer than `keep`
/// newer checkpoints. This number does not include checkpoints newer than the tracker's, nor
/// checkpoints that a load skipped as damaged. A checkpoint that an earlier life was right to
/// remove stays removed, whatever happened to the newer ones since then. Checkpoints that were
/// damaged on purpose are not judged.
judged::Findings judge_store(const JudgedStore& where, const CheckpointPlan& plan,
                             const Past& past);

}  // namespace reprise::driver
