#pragma once
// Wrong decisions about memory beyond the job's own.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Clones every element before staging any.
void clone_before_staging(Policies& policies);
/// Allocates the whole tensor for a load if the rank's shard of it is empty.
void materialise_empty_shards(Policies& policies);
/// Stages a whole tensor on a rank that has nothing to write.
void fill_a_tensor_for_nothing(Policies& policies);
/// Keeps loaded data until all of it has arrived.
void keep_loaded_copy(Policies& policies);

}  // namespace reprise::sim
