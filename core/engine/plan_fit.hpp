#pragma once
// Whether a plan that was not made of a rank's state has a place for it.

#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

/// Leaves of which the plan has not all boxes, in their shape and dtype: what a save by this plan
/// would drop. Objects by their full name.
std::vector<std::string> unplanned_keys(const GlobalPlan& plan, const StateDict& state);

/// Whether `self` holds all that it is to write, as main copies where it is objects, and nothing
/// that is unplanned.
bool serves(const GlobalPlan& plan, const StateDict& state, GroupRank self);

bool same_plan(const GlobalPlan& a, const GlobalPlan& b);

}  // namespace reprise
