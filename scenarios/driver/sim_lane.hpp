#pragma once
// One incarnation on the simulated cluster, whatever its ranks do.

#include <functional>
#include <memory>
#include <optional>

#include "reprise/error.hpp"
#include "scenarios/driver/lane.hpp"
#include "scenarios/driver/record.hpp"
#include "sim/faults/faulty_ports.hpp"
#include "sim/job/processor.hpp"
#include "sim/world/world.hpp"

namespace reprise::driver {

/// The code of ranks that were still waiting when none could go on; the message names each rank's
/// group, sequence number and operation.

/// What the world lends to a rank's program.
struct RankSeat {
  const Ports& ports;
  Clock& clock;
  GlobalRank rank;
  sim::FaultPowers powers;
};

/// The ranks' records, in rank order, as far as the program filled them; they say how each rank
/// ended. What the program returns ended the rank, and its peers learn of it.
IncarnationRecord run_in_world(
    const sim::WorldOptions& options, Store& store,
    const std::function<std::optional<Error>(const RankSeat& seat, RankRecord& record)>& program);

/// Where a rank's arrays live: the processor that has them, and the device that copies them.
struct RankMemory {
  sim::Processor& processor;
  Device& device;
};
/// What it refers to lives as long as the world does.
using MemoryOf = std::function<RankMemory(const RankSeat& seat)>;
/// The host's memory and the world's own device.
RankMemory host_memory(const RankSeat& seat);

/// The simulated lane over arrays that live elsewhere.
std::unique_ptr<Lane> make_sim_lane(const Scenario& scenario, const LaneOptions& options,
                                    MemoryOf memory);

}  // namespace reprise::driver
