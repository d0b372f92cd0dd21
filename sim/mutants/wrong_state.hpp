#pragma once
// Wrong decisions of the job: what it emits, what it asks for, what it refreshes.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// The template lacks the moments, since a fresh optimizer has none yet.
void lazy_state_template(Policies& policies);

/// A part of the optimizer is neither saved nor asked for.
void forget_masters(Policies& policies);
void forget_first_moments(Policies& policies);
void forget_second_moments(Policies& policies);
/// The optimizer's step counts are not saved.
void forget_steps(Policies& policies);
/// None of these.
void forget_optimizer(Policies& policies);

/// Nothing loaded reaches the compute weights.
void skip_refresh(Policies& policies);
/// The list of parameters to gather is empty: other ranks' shares stay as they were.
void gather_nothing(Policies& policies);

/// The replica id leaves out an axis along which copies are held.
void drop_tp_from_replica(Policies& policies);
void drop_dp_from_replica(Policies& policies);

}  // namespace reprise::sim
