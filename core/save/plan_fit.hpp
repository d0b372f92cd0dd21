#pragma once
// Checks that a plan made from other state has a place for this rank's state.

#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

/// Returns the leaves for which the plan lacks a box or has another shape or dtype: a save by this
/// plan would drop them. Objects are listed by full name.
std::vector<std::string> unplanned_keys(const GlobalPlan& plan, const StateDict& state);

/// True if rank `self` holds everything the plan makes it write (objects as main copies), and has
/// nothing unplanned.
bool serves(const GlobalPlan& plan, const StateDict& state, GroupRank self);

bool same_plan(const GlobalPlan& a, const GlobalPlan& b);

}  // namespace reprise
