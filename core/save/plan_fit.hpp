#pragma once
// Checks whether a plan that was made for a different state also covers this rank's state.

#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

/// Returns the keys of those leaves in `state` that a save with this plan would not store
/// completely: a box of the leaf is not in the plan, or the plan has another shape or dtype for the
/// leaf. Keys of objects include coordinate and grid.
std::vector<std::string> unplanned_keys(const GlobalPlan& plan, const StateDict& state);

}  // namespace reprise
