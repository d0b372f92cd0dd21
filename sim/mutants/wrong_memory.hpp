#pragma once
// Wrong decisions on what is held beside the job's own memory.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Every element is cloned before any is staged.
void clone_before_staging(Policies& policies);
/// What is loaded is kept until all of it is there.
void keep_loaded_copy(Policies& policies);

}  // namespace reprise::sim
