#pragma once
// What is asked for against what is stored, over all ranks.

#include <string>
#include <vector>

#include "core/plan/load_plan.hpp"
#include "core/plan/strictness.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

/// Collective. A key is not requested if no rank requests it, and not stored if some rank requests
/// it in vain; `not_stored` are this rank's.
KeyMismatch mismatch_over(Communicator& group, const LoadPlan& plan,
                          const std::vector<std::string>& not_stored);

/// Takes those out of `keys` that `excused` names, objects by their key without the grid.
std::vector<std::string> take_excused(std::vector<std::string>& keys,
                                      const std::vector<std::string>& excused);

/// Throws NOT_STORED, or NOT_REQUESTED if all that is requested is stored.
[[noreturn]] void refuse(const KeyMismatch& keys);

}  // namespace reprise
