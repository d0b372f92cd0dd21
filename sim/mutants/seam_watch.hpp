#pragma once
// Notes which replaceable decisions a run asks. If a run of the right job asks none of the
// decisions that a mutant replaces, the mutant cannot change that run.

#include <bitset>
#include <cstddef>

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

inline constexpr std::size_t kSeamsMax = 128;
/// A set of decisions. The numbers are places in the list of all decisions in seam_watch.cpp.
using SeamSet = std::bitset<kSeamsMax>;

/// Returns the decisions that the mutant replaces.
SeamSet seams_replaced_by(const Mutant& mutant);

/// True if a decision of these policies is not the engine's or the job's own.
bool has_replaced_seams(const Policies& policies);

/// Makes each decision of a default policy note that it was asked, and then decide as before.
/// Decisions that are null by default stay null.
void watch_seams(Policies& policies);
/// Returns the decisions that this thread has asked since the last call. A decision that is null by
/// default cannot be watched and is always in the set.
SeamSet take_asked_seams();

}  // namespace reprise::sim
