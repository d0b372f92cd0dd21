#pragma once
// Reconstructs from a catalogue the plan by which the checkpoint was written, so that a job that
// loaded it need not plan its first save. The catalogue does not say which ranks held main copies,
// so all ranks together check that the plan serves the job:
//
//   each rank  holds what the plan assigns to it, and all it holds has a place (plan_fit)
//   all ranks  hashes of their main copies add up to the hash of the plan's boxes and objects

#include <cstdint>
#include <optional>

#include "core/plan/save_plan.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// Returns nothing unless each item is in a file "__<rank>_0.distcp" of one of `savers` ranks and
/// the boxes of each tensor tile it, none of them empty. The plan's signature is 0, because a
/// catalogue does not contain the ranks' offers.
std::optional<GlobalPlan> plan_of(const Catalog& catalog, std::int32_t savers);

/// The first returns a hash of all boxes and objects in the plan; the second returns a hash of the
/// main copies in one rank's state. Each is a sum of hashes, modulo 2^64. The values of all ranks'
/// states add up to the plan's value, whichever rank holds which copy.
std::uint64_t main_copies(const GlobalPlan& plan);
std::uint64_t main_copies(const StateDict& state);

}  // namespace reprise
