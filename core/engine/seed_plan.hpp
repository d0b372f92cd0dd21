#pragma once
// The plan by which a checkpoint was written, read off its catalogue: so that a job that loaded it
// need not plan its first save. The catalogue tells main copies apart from nothing, so whether the
// plan serves a job is settled by all its ranks together:
//
//   each rank    holds what the plan wants of it, and nothing that has no place in it (plan_fit)
//   their sum    the hashes of all ranks' main copies add up to the plan's boxes and objects

#include <cstdint>
#include <optional>

#include "core/plan/save_plan.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// Nothing unless each item stands in a file of one of `savers` group ranks ("__<rank>_0.distcp"),
/// no box is empty and all tile. Its signature is 0: no catalogue knows what the ranks offered.
std::optional<GlobalPlan> plan_of(const Catalog& catalog, std::int32_t savers);

/// A hash of main copies that does not depend on who holds which: of a plan, and this rank's part
/// of the same sum (modulo 2^64).
std::uint64_t main_copies(const GlobalPlan& plan);
std::uint64_t main_copies(const StateDict& state);

}  // namespace reprise
