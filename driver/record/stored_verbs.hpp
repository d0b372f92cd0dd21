#pragma once
// Reshards and compares the stored checkpoints of a scenario between two lives, as the verbs
// `reshard` and `diff` do.

#include <vector>

#include "core/seams/diff_seams.hpp"
#include "core/seams/reshard_seams.hpp"
#include "driver/language/scenario.hpp"
#include "driver/record/record.hpp"
#include "reprise/store.hpp"

namespace reprise::driver {

/// Rewrites the newest checkpoint in its place, and keeps the original for a diff. If the plan says
/// that it must fail and it doesn't, the finding is VERDICT_DISAGREEMENT. Throws the Error of any
/// other failure.
void reshard_stored(Store& store, const ReshardAction& plan, const ReshardSeams& seams,
                    Findings& findings);
/// Compares two checkpoints. If the outcome is not the planned one, the finding is
/// VERDICT_DISAGREEMENT. Throws an Error if one of them can't be opened.
void diff_stored(Store& store, const DiffAction& plan, const DiffSeams& seams, Findings& findings);

}  // namespace reprise::driver
