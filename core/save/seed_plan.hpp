#pragma once
// Reconstructs the plan of a checkpoint from its catalogue. A job that loaded the checkpoint can
// then make its first save without planning. The catalogue does not say which ranks held main
// copies, so all ranks together check that the plan fits the job:
//
//   each rank  holds what the plan assigns to it, and the plan covers the rank's state (plan_fit)
//   all ranks  hashes of their main copies add up to the hash of the plan's boxes and objects

#include <cstdint>
#include <optional>

#include "core/plan/save_plan.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// Returns the plan by which the checkpoint was written. Returns nothing if an item's file is not
/// called "__<rank>_0.distcp" with a rank below `savers`, if the boxes of a tensor do not tile it,
/// or if a box is empty. The plan's signature is 0, because a catalogue does not contain the ranks'
/// offers.
std::optional<GlobalPlan> plan_of(const Catalog& catalog, std::int32_t savers);

/// Both functions return a sum of hashes, modulo 2^64: of all boxes and objects in a plan, or of
/// the main copies in one rank's state. If the ranks' main copies are exactly the boxes and objects
/// of the plan, the sums of all ranks add up to the sum of the plan.
std::uint64_t main_copies(const GlobalPlan& plan);
std::uint64_t main_copies(const StateDict& state);

}  // namespace reprise
