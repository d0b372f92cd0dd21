#pragma once
// Reconstructs from a catalogue the plan by which the checkpoint was written, so that a job that
// loaded it need not plan its first save. The catalogue does not say which ranks held main copies,
// so all ranks together check that the plan fits the job:
//
//   each rank  holds what the plan assigns to it, and the plan covers what it holds (plan_fit)
//   all ranks  hashes of their main copies add up to the hash of the plan's boxes and objects

#include <cstdint>
#include <optional>

#include "core/plan/save_plan.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// Returns the plan by which the checkpoint was written. Returns nothing if an item is in a file
/// that is not called "__<rank>_0.distcp" with a rank below `savers`, if the boxes of a tensor do
/// not tile it, or if one of them is empty. The plan's signature is 0, because a catalogue does not
/// contain the ranks' offers.
std::optional<GlobalPlan> plan_of(const Catalog& catalog, std::int32_t savers);

/// The first returns a hash of all boxes and objects in the plan; the second returns a hash of the
/// main copies in one rank's state. Both are sums of hashes, modulo 2^64. The hashes of all ranks'
/// states therefore add up to the hash of the plan if the ranks' main copies are exactly the boxes
/// and objects of the plan.
std::uint64_t main_copies(const GlobalPlan& plan);
std::uint64_t main_copies(const StateDict& state);

}  // namespace reprise
