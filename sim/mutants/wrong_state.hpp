#pragma once
// Wrong decisions on what of the job's state goes into a checkpoint.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// A part of the optimizer is neither saved nor asked for.
void forget_masters(Policies& policies);
void forget_first_moments(Policies& policies);
void forget_second_moments(Policies& policies);
/// The optimizer's step counts are not saved.
void forget_steps(Policies& policies);
/// None of these.
void forget_optimizer(Policies& policies);

/// On ranks without experts the step counts stay 0.
void keep_steps_of_ranks_without_experts(Policies& policies);

}  // namespace reprise::sim
