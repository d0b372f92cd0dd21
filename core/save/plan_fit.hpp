#pragma once
// Checks that a plan made from other state has a place for this rank's state.

#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

/// Returns the leaves that a save by this plan would drop, because the plan lacks one of their
/// boxes or has another shape or dtype for them. Objects are listed by full name.
std::vector<std::string> unplanned_keys(const GlobalPlan& plan, const StateDict& state);

/// True if rank `self` holds everything that the plan assigns to it (of objects, the main copies),
/// and the plan has a place for everything that the rank holds.
bool serves(const GlobalPlan& plan, const StateDict& state, GroupRank self);

bool same_plan(const GlobalPlan& a, const GlobalPlan& b);

}  // namespace reprise
