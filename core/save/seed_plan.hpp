#pragma once
// Reconstructs from a catalogue the plan by which the checkpoint was written, so that a job that
// loaded it need not plan its first save. The catalogue does not tell who held main copies, so all
// ranks together check that the plan serves the job:
//
//   each rank    has what the plan wants it to write, and nothing without a place (plan_fit)
//   their sum    hashes of all ranks' main copies add up to the plan's boxes and objects

#include <cstdint>
#include <optional>

#include "core/plan/save_plan.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// Returns nothing unless each item is in a file "__<rank>_0.distcp" of one of `savers` ranks and
/// the boxes, none of them empty, tile. Its signature is 0: no catalogue knows the ranks' offers.
std::optional<GlobalPlan> plan_of(const Catalog& catalog, std::int32_t savers);

/// Return a hash of main copies that does not depend on who holds which: for a plan, and this
/// rank's part of the same sum (modulo 2^64).
std::uint64_t main_copies(const GlobalPlan& plan);
std::uint64_t main_copies(const StateDict& state);

}  // namespace reprise
