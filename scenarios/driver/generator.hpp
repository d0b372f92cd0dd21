#pragma once
// Random scenarios: jobs, layouts to save under and to load under, ways to keep the optimizer. A
// case is a function of its stream alone, so a seed names all of them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.hpp"
#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

struct CaseLimits {
  std::int32_t world_max = 16;
  std::size_t incarnations_max = 4;
};

/// A layout of `world` ranks that the model can be cut by; passes sim::check.
sim::Layout random_layout(Stream& random, const std::string& model, std::int32_t world);

/// A whole scenario, expectations included. Half of its loads change one or two axes of the layout
/// before, the others draw a new one; a third of its lives have members in another order, some of
/// them with gaps between.
Scenario random_scenario(Stream random, const CaseLimits& limits);
/// One in which something goes wrong: a rank dies at some moment of some phase, a write or a sync
/// fails, or a device computes wrongly and the job is restarted on another one. It must go on from
/// a committed checkpoint all the same.
Scenario random_faulty_scenario(Stream random, const CaseLimits& limits);

// --- what must come of a scenario, from the requirements and not from the job --------------------

/// Why a checkpoint that was saved under `saved` must be refused under `loading`; nothing if it
/// must load. Optimizer state in buckets (dp_reshardable) survives a change of data parallelism
/// alone: dp with its replicas, cp, which shares like dp, and the order of the ranks.
std::optional<std::string> refusal_between(const IncarnationPlan& saved,
                                           const IncarnationPlan& loading);

/// False if some pipeline stage holds no layer and is neither the first nor the last: then its
/// ranks have nothing to compare.
bool every_rank_owns(const sim::Layout& layout, const std::string& model);

/// Ends the scenario at the first load that must be refused, if there is one, and writes its
/// expectation anew.
void expect_what_must_come(Scenario& scenario);

/// Members that are no longer one for each of the layout are left out: then they are 0, 1, ...
void fit_members(Scenario& scenario);

/// Each load has a checkpoint, and something is loaded.
bool makes_sense(const Scenario& scenario);

}  // namespace reprise::driver
