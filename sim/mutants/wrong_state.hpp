#pragma once
// Wrong decisions about the job's state that a checkpoint holds.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Neither saves nor requests a part of the optimizer.
void forget_masters(Policies& policies);
void forget_first_moments(Policies& policies);
void forget_second_moments(Policies& policies);
/// Does not save the optimizer's step counts.
void forget_steps(Policies& policies);
/// Saves none of these.
void forget_optimizer(Policies& policies);

/// Leaves the step counts at 0 on ranks without experts.
void keep_steps_of_ranks_without_experts(Policies& policies);

}  // namespace reprise::sim
