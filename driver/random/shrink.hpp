#pragma once
// Reduces a failing scenario by delta debugging, without changing the kind of failure. The search
// is greedy and not random, so a scenario always shrinks to the same result.

#include <cstdint>
#include <functional>
#include <vector>

#include "driver/language/scenario.hpp"

namespace reprise::driver {

/// Returns simpler variants. Those with the largest changes come first: fewer lives, one
/// model instead of modules, fewer modules, modules side by side, fewer actions and steps, one rank
/// instead of many, fully_reshardable, gpt-tiny, the default of each key. Each variant is valid,
/// makes sense, has the right expectation, has a smaller weight_of(), and comes once.
std::vector<Scenario> simpler(const Scenario& scenario);

/// Returns a measure of the effort to read and to run the scenario.
std::uint64_t weight_of(const Scenario& scenario);

struct Shrunk {
  Scenario scenario;
  std::size_t tries = 0;  ///< number of variants that were run
};

/// Repeatedly replaces the scenario by its first simpler variant for which `fails_alike` is true,
/// until there is none or `tries_max` variants have run.
Shrunk shrink(Scenario failing, const std::function<bool(const Scenario&)>& fails_alike,
              std::size_t tries_max = 1000);

}  // namespace reprise::driver
