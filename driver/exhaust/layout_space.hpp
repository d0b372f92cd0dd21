#pragma once
// Enumerates layouts. Pure.

#include <cstdint>
#include <vector>

#include "sim/job/groups/layout.hpp"

namespace reprise::driver {

/// Returns every layout of 1 to `world_max` ranks with the default rank order, sorted by number of
/// ranks. A layout has sizes tp x cp x dp x pp of the dense mesh, and sizes etp x ep x edp of the
/// expert mesh. The expert mesh shares the ranks of tp x cp x dp.
std::vector<sim::Layout> layouts_up_to(std::int32_t world_max);

}  // namespace reprise::driver
