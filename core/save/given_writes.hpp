#pragma once
// Makes a plan of what the job's own planner decided: each rank's share of what is written.

#include <span>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/save.hpp"

namespace reprise {

/// Returns this rank's share as a message to the others. Throws NO_WRITER with the key if the rank
/// does not hold what it is to write.
Bytes encode_writes(std::span<const WriteItem> writes, const StateDict& state);

/// Returns the plan in which each box has the owner that the ranks' shares give it. Throws
/// MULTI_WRITER if several ranks, of `savers`, are to write the same, and COLLECTIVE_MISMATCH if a
/// message cannot be decoded.
GlobalPlan owners_by_writes(std::span<const Bytes> shares, const Group& savers);

/// Gives each object of the plan the owner that `owners` has for it. Throws NO_WRITER with the key
/// if `owners` lacks one.
void take_object_owners(const GlobalPlan& owners, GlobalPlan& plan);

}  // namespace reprise
