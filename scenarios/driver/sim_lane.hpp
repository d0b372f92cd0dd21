#pragma once
// One incarnation on the simulated cluster, whatever its ranks do.

#include <functional>

#include "scenarios/driver/record.hpp"
#include "sim/world/world.hpp"

namespace reprise::driver {

/// The code of ranks that were still waiting when none could go on; the message names each rank's
/// group, sequence number and operation.
inline constexpr const char* kHangCode = "HANG";

/// The ranks' records, in rank order; a rank that wrote none gets one that says how it ended.
IncarnationRecord run_in_world(
    const sim::WorldOptions& options, Store& store,
    const std::function<RankRecord(Ports& ports, GlobalRank rank)>& program);

}  // namespace reprise::driver
