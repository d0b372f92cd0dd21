#pragma once
// Converts the faults of a scenario to the form that the simulated ports take.

#include <vector>

#include "driver/language/scenario.hpp"
#include "sim/faults/fault.hpp"

namespace reprise::driver {

/// Returns the fault. Throws USAGE for an unknown kind or moment.
sim::FaultSpec spec_of(const FaultAction& fault);
/// Returns one fault for each of the action's ranks.
std::vector<sim::FaultSpec> specs_of(const BadResultAction& bad);

}  // namespace reprise::driver
