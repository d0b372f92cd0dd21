#pragma once
// What is asked for against what is stored, over all ranks.

#include <string>
#include <vector>

#include "core/plan/load_plan.hpp"
#include "core/plan/strictness.hpp"
#include "core/ports/fabric.hpp"

namespace reprise {

/// Collective. Missing: stored, and asked for by no rank. Unexpected: asked for by some rank, and
/// not stored; `absent` are this rank's.
KeyMismatch mismatch_over(Communicator& group, const LoadPlan& plan,
                          const std::vector<std::string>& absent);

/// Takes those out of `keys` that `excused` names, objects by their key without the grid.
std::vector<std::string> take_excused(std::vector<std::string>& keys,
                                      const std::vector<std::string>& excused);

/// MISSING_KEY or UNREQUESTED_KEYS.
[[noreturn]] void refuse(const KeyMismatch& keys);

}  // namespace reprise
