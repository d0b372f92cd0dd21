#pragma once
// Wrong decisions about caches that outlive a save.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Uses a remembered plan for every later save, and drops state that the plan does not contain.
void forget_signature(Policies& policies);

/// Shares one cache among all kinds of checkpoint, and uses its content without a comparison.
void share_one_cache(Policies& policies);

/// Remembers the ranks' offers before the save is known to be valid.
void remember_before_validation(Policies& policies);

/// Keeps owners by the smallest rank of the group only; `unverified`: also uses them without
/// checking the tensors that they were chosen for.
void keep_owners_by_smallest_rank(Policies& policies);
void keep_owners_by_smallest_rank_unverified(Policies& policies);

/// Keeps a checkpoint's metadata by its directory only; `unverified`: likewise.
void keep_metadata_by_directory(Policies& policies);
void keep_metadata_by_directory_unverified(Policies& policies);

}  // namespace reprise::sim
