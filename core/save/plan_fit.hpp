#pragma once
// Checks whether a plan that was made for a different state also covers this rank's state.

#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

/// Returns the leaves of `state` that a save by this plan would not store completely: the plan
/// lacks one of their boxes, or has a different shape or dtype for them. Objects are named with
/// their coordinate and grid.
std::vector<std::string> unplanned_keys(const GlobalPlan& plan, const StateDict& state);

/// True if the plan fits the state of rank `self`: the rank holds every box that the plan assigns
/// to it, it holds the main copies of exactly those objects that the plan assigns to it, and the
/// plan contains everything that the rank holds.
bool serves(const GlobalPlan& plan, const StateDict& state, GroupRank self);

bool same_plan(const GlobalPlan& a, const GlobalPlan& b);

}  // namespace reprise
