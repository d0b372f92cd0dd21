#pragma once
// Wrong copy indices of a rank, and so wrong writers.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Omits an axis along which copies exist from the replica id.
void drop_tp_from_replica(Policies& policies);
void drop_pp_from_replica(Policies& policies);
void drop_cp_from_replica(Policies& policies);
void drop_dp_from_replica(Policies& policies);

/// Uses the rank in the data-parallel group, which ignores copies along other axes.
void count_copies_over_dp_alone(Policies& policies);

/// Puts experts' main copies where the dense tensors' are.
void elect_experts_by_dense_group(Policies& policies);
/// Puts dense tensors' main copies where the experts' are.
void write_where_expert_dp_is_0(Policies& policies);

/// Counts everything on a later pipeline stage as a spare copy.
void count_stages_as_copies(Policies& policies);

}  // namespace reprise::sim
