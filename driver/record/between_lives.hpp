#pragma once
// Does to the store what a scenario plans between two lives.

#include "driver/language/scenario.hpp"
#include "driver/record/history.hpp"
#include "reprise/store.hpp"

namespace reprise::driver {

/// Carries out the actions of the plan that happen after the life: damages a checkpoint, renames it
/// to a release, or splits its metadata. Throws an Error if the file or the checkpoint does not
/// exist.
void do_between_lives(Store& store, const IncarnationPlan& plan, Past& past);

}  // namespace reprise::driver
