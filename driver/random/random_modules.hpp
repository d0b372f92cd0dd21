#pragma once
// Draws the modules of random jobs: one or two encoders and a language model, in any order.
//
//   disjoint    vision tp2 on 0 1, language dp3 on 2 3 4      in order, or with random ranks
//   colocated   vision tp2 on 0 1, language dp2 on 0 1
//
// One language model in twelve has twenty layers with experts; the others are small.

#include <vector>

#include "driver/random/generator.hpp"

namespace reprise::driver {

/// Returns the modules of a new job. They are colocated in one case of three, and always if the
/// world is too small for disjoint modules. Each module has a random layout and sharding; a quarter
/// have a loss scale that overflows, and a few have a frozen encoder.
std::vector<sim::ModuleConfig> random_modules(Stream& random, const CaseLimits& limits);

/// Returns the modules after a restart. Their sizes and order may differ from before, and they may
/// change between disjoint and colocated. Modules that were saved in buckets (dp_reshardable)
/// change only their dp.
std::vector<sim::ModuleConfig> changed_modules(Stream& random,
                                               std::vector<sim::ModuleConfig> before,
                                               const CaseLimits& limits);

}  // namespace reprise::driver
