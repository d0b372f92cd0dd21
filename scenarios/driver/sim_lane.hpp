#pragma once
// One incarnation on the simulated cluster, whatever its ranks do.

#include <functional>
#include <optional>

#include "core/base/error.hpp"
#include "scenarios/driver/record.hpp"
#include "sim/faults/faulty_ports.hpp"
#include "sim/world/world.hpp"

namespace reprise::driver {

/// The code of ranks that were still waiting when none could go on; the message names each rank's
/// group, sequence number and operation.
inline constexpr const char* kHangCode = "HANG";

/// What the world lends to a rank's program.
struct RankSeat {
  const Ports& ports;
  GlobalRank rank;
  sim::FaultPowers powers;
};

/// The ranks' records, in rank order, as far as the program filled them; they say how each rank
/// ended. What the program returns ended the rank, and its peers learn of it.
IncarnationRecord run_in_world(
    const sim::WorldOptions& options, Store& store,
    const std::function<std::optional<Error>(const RankSeat& seat, RankRecord& record)>& program);

}  // namespace reprise::driver
