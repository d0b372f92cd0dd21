#pragma once
// Wrong decisions about what is kept from save to save.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// A plan that is remembered serves every later save, and what it has no place for is dropped.
void forget_signature(Policies& policies);

/// All kinds of checkpoint have one cache, and what is in it is taken without a comparison.
void share_one_cache(Policies& policies);

/// What ranks offer is remembered before it is known whether the save can be.
void remember_before_validation(Policies& policies);

/// Owners are kept under the smallest rank of the group alone; `unverified`: and used without a
/// look at what they were chosen for.
void keep_owners_by_smallest_rank(Policies& policies);
void keep_owners_by_smallest_rank_unverified(Policies& policies);

/// A checkpoint's metadata is kept under its directory alone; `unverified`: likewise.
void keep_metadata_by_directory(Policies& policies);
void keep_metadata_by_directory_unverified(Policies& policies);

}  // namespace reprise::sim
