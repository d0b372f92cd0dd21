#pragma once
// Wrong decisions on what is held beside the job's own memory.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Every element is cloned before any is staged.
void clone_before_staging(Policies& policies);
/// Where a rank's shard of a tensor is empty, all of the tensor is made there for a load to fill.
void materialise_empty_shards(Policies& policies);
/// A rank that has nothing to write stages a whole tensor.
void fill_a_tensor_for_nothing(Policies& policies);
/// What is loaded is kept until all of it is there.
void keep_loaded_copy(Policies& policies);

}  // namespace reprise::sim
