#pragma once
// Compares requested keys with stored keys across all ranks.

#include <string>
#include <vector>

#include "core/plan/load_plan.hpp"
#include "core/plan/strictness.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

/// Collective. A stored key counts as not requested only if no rank requests it. A requested key
/// counts as not stored if it is in any rank's list `not_stored`.
KeyMismatch mismatch_over(Communicator& group, const LoadPlan& plan,
                          const std::vector<std::string>& not_stored);

/// Removes from `keys` every key that is in `excused`, and returns the removed keys. If an object's
/// name is in `excused`, the keys of all its shards are removed.
std::vector<std::string> take_excused(std::vector<std::string>& keys,
                                      const std::vector<std::string>& excused);

/// Throws NOT_STORED if any requested key is not stored; otherwise throws NOT_REQUESTED.
[[noreturn]] void refuse(const KeyMismatch& keys);

}  // namespace reprise
