#pragma once
// Wrong decisions that make ranks differ which a checkpoint takes for copies, or leave state
// without an owner.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Each replicated group starts from values of its own.
void start_copies_apart(Policies& policies);
/// The last of several stages that hold a parameter is no member of the group that sums its
/// gradients.
void leave_last_stage_out(Policies& policies);

/// The expert streams are kept once for all expert-parallel ranks.
void declare_expert_streams_copies(Policies& policies);

/// Buckets are laid out for the ranks of all optimizer instances.
void lay_out_buckets_for_all_instances(Policies& policies);

}  // namespace reprise::sim
