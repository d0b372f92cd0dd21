#pragma once
// Enumerates layouts. Pure.

#include <cstdint>
#include <vector>

#include "sim/job/groups/layout.hpp"

namespace reprise::driver {

/// The ways in which the dp of a layout is cut.
enum class DpCuts : std::uint8_t {
  kShards,           ///< all ranks along dp share one copy
  kCopiesAndShards,  ///< every replicate x shard = dp, which is HSDP on the dense mesh
};

/// Returns every layout of 1 to `world_max` ranks with the default rank order, sorted by number of
/// ranks. A layout has sizes tp x cp x dp x pp of the dense mesh, and sizes etp x ep x edp of the
/// expert mesh. The expert mesh shares the ranks of tp x cp x dp. If dp is split into copies, edp
/// is split as sim::Layout::expert_copies() says.
std::vector<sim::Layout> layouts_up_to(std::int32_t world_max, DpCuts cuts = DpCuts::kShards);

}  // namespace reprise::driver
