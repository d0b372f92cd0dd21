#pragma once
// Random scenarios: jobs, layouts to save under and to load under, ways to keep the optimizer. A
// case is a function of its stream alone, so a seed names all of them.

#include <cstdint>
#include <string>

#include "core/base/random.hpp"
#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

struct CaseLimits {
  std::int32_t world_max = 16;
  std::size_t incarnations_max = 4;
};

sim::Sharding random_sharding(Stream& random);
/// Ranks of a world: half of the time few.
std::int32_t random_world(Stream& random, const CaseLimits& limits);
/// A layout of `world` ranks that the model can be cut by; passes sim::check.
sim::Layout random_layout(Stream& random, const std::string& model, std::int32_t world);

/// A whole scenario, expectations included. Half of its loads change one or two axes of the layout
/// before, the others draw a new one; a third of its lives have members in another order, some of
/// them with gaps between. One in four is a job of modules, see random_modules.hpp.
Scenario random_scenario(Stream random, const CaseLimits& limits);
/// One in which something goes wrong: a rank dies at some moment of some phase, a write or a sync
/// fails, or a device computes wrongly and the job is restarted on another one. It must go on from
/// a committed checkpoint all the same.
Scenario random_faulty_scenario(Stream random, const CaseLimits& limits);

}  // namespace reprise::driver
