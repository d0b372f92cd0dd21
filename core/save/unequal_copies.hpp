#pragma once
// Compares the copies of objects and of boxes that ranks hold. Only one copy of each is written, so
// what differs on another rank would be lost without a word.

#include <cstdint>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/ports.hpp"
#include "reprise/save.hpp"

namespace reprise {

/// Returns this rank's part of a sum that is 0 over all ranks if all copies are equal, and
/// otherwise not 0 but for a chance of 1 in 2^64: each holder of an object that has copies adds a
/// hash of its value, and the owner subtracts its own as often as there are other holders. `self`
/// is this rank.
std::uint64_t part_of_copies(const GlobalPlan& plan, GroupRank self, const StateDict& state);

/// Collective, for copies whose sum is not 0. Returns the objects whose copies differ, by key.
std::vector<UnequalCopy> unequal_copies(Communicator& group, const GlobalPlan& plan,
                                        const StateDict& state);

/// Collective. Returns the boxes of tensors whose copies differ, by key and box. Reads all boxes of
/// all ranks.
std::vector<UnequalCopy> unequal_tensors(const Ports& ports, Communicator& group,
                                         const GlobalPlan& plan, const StateDict& state);

/// Returns a line that names the key and the ranks.
std::string line_of(const UnequalCopy& copy);

}  // namespace reprise
