#pragma once
// The faults of a scenario as the ports know them.

#include <vector>

#include "scenarios/driver/scenario.hpp"
#include "sim/faults/fault.hpp"

namespace reprise::driver {

/// USAGE for a kind or moment that there is not.
sim::FaultSpec spec_of(const FaultAction& fault);
/// One for each of its ranks.
std::vector<sim::FaultSpec> specs_of(const BadResultAction& bad);

}  // namespace reprise::driver
