#pragma once
// Wrong decisions that make declared copies differ between ranks, or leave state without an
// owner.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Starts each replicated group from its own values.
void start_copies_apart(Policies& policies);
/// Excludes the last of several stages that hold a parameter from the group that sums its
/// gradients.
void leave_last_stage_out(Policies& policies);

/// Keeps the expert streams once for all expert-parallel ranks.
void declare_expert_streams_copies(Policies& policies);

/// Lays out buckets for the ranks of all optimizer instances.
void lay_out_buckets_for_all_instances(Policies& policies);

}  // namespace reprise::sim
