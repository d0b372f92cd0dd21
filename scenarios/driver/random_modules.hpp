#pragma once
// Modules of random jobs: two or three, an encoder or two and a language model, in any order.
//
//   disjoint    vision tp2 on 0 1, language dp3 on 2 3 4      in order, or dealt at random
//   colocated   vision tp2 on 0 1, language dp2 on 0 1
//
// One language model in twelve has twenty layers with experts; the others are small.

#include <vector>

#include "scenarios/driver/generator.hpp"

namespace reprise::driver {

/// Disjoint where the world is large enough, and in one case of three colocated. Layouts of any
/// kind, a sharding for each, in a quarter a loss scale that overflows, few encoders frozen.
std::vector<sim::ModuleConfig> random_modules(Stream& random, const CaseLimits& limits);

/// The same modules after a restart: other sizes, another order, disjoint for colocated and back.
/// Buckets (dp_reshardable) that were saved only change their dp.
std::vector<sim::ModuleConfig> changed_modules(Stream& random,
                                               std::vector<sim::ModuleConfig> before,
                                               const CaseLimits& limits);

}  // namespace reprise::driver
