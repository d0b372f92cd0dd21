#pragma once
// From what a life left behind to what the next one is told.

#include "reprise/store.hpp"
#include "scenarios/driver/history.hpp"
#include "scenarios/driver/record.hpp"
#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

/// Adds the life's saves, certain where some rank saw them end well and no fault lied about the
/// store, and the faults that outlive it.
void add_life(const IncarnationRecord& life, Past& past);

/// True if a fault fired that reports as done what was not, or writes what it was not given: then
/// what the life saved may be damaged.
bool was_lied_to(const IncarnationRecord& life);

/// Does to the store what the plan has for the time after the life. Throws an Error if there is no
/// such file or checkpoint.
void do_between_lives(Store& store, const IncarnationPlan& plan, Past& past);

}  // namespace reprise::driver
