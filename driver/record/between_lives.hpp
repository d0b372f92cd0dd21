#pragma once
// Does to the store what a scenario plans between two lives.

#include "driver/language/scenario.hpp"
#include "driver/record/history.hpp"
#include "driver/record/record.hpp"
#include "reprise/store.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::driver {

/// Carries out the actions of the plan that happen after the life: damages a checkpoint, renames it
/// to a release, splits its metadata, reshards it or compares it. Adds a finding for each reshard
/// and diff that did not end as planned. Throws an Error if the file or the checkpoint does not
/// exist, and the Error of a reshard that was not to fail.
void do_between_lives(Store& store, const LifePlan& plan, const sim::Policies& policies, Past& past,
                      Findings& findings);

}  // namespace reprise::driver
