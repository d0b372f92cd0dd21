#pragma once
// Makes a failing scenario small: delta debugging that keeps the way in which it fails. Greedy and
// without chance, so the same scenario shrinks to the same one.

#include <cstdint>
#include <functional>
#include <vector>

#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

/// Simpler variants, the most daring first: fewer incarnations, one model where there were modules,
/// fewer modules, side by side, fewer actions and steps, one rank where there were many, the
/// default order, fully_reshardable, gpt-tiny, seed 1. Each is valid,
/// makes sense, expects what must come of it, and has a smaller weight_of().
std::vector<Scenario> simpler(const Scenario& scenario);

/// How much there is to read and to run.
std::uint64_t weight_of(const Scenario& scenario);

struct Shrunk {
  Scenario scenario;
  std::size_t tries = 0;  ///< variants that were run
};

/// Follows the first simpler variant that `fails_alike` until there is none, or for `tries_max`
/// variants.
Shrunk shrink(Scenario failing, const std::function<bool(const Scenario&)>& fails_alike,
              std::size_t tries_max = 1000);

}  // namespace reprise::driver
