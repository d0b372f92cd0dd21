#pragma once
// Wrong answers to the question which copy a rank holds, and so who writes.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// The replica id leaves out an axis along which copies are held.
void drop_tp_from_replica(Policies& policies);
void drop_pp_from_replica(Policies& policies);
void drop_cp_from_replica(Policies& policies);
void drop_dp_from_replica(Policies& policies);

/// The rank in the data-parallel group, which says nothing of copies along other axes.
void count_copies_over_dp_alone(Policies& policies);

/// Experts' main copies are where the dense tensors' are.
void elect_experts_by_dense_group(Policies& policies);
/// Dense tensors' main copies are where the experts' are.
void write_where_expert_dp_is_0(Policies& policies);

/// Whatever stands on a later pipeline stage counts as a spare copy.
void count_stages_as_copies(Policies& policies);

}  // namespace reprise::sim
