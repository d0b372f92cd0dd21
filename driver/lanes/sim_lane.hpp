#pragma once
// Runs any program on the ranks of the simulated cluster, for one life.

#include <functional>
#include <memory>
#include <optional>

#include "driver/lanes/lane.hpp"
#include "driver/record/record.hpp"
#include "reprise/error.hpp"
#include "sim/faults/faulty_ports.hpp"
#include "sim/job/model/processor.hpp"
#include "sim/world/world.hpp"

namespace reprise::driver {

/// Everything that the simulated world provides to a rank's program.
struct RankSeat {
  const Ports& ports;
  Clock& clock;
  GlobalRank rank;
  sim::FaultPowers powers;
};

/// Runs the program on every rank. Returns the ranks' records in rank order. The program fills its
/// rank's record while it runs; this function adds how the rank ended. If the program returns an
/// error, its rank ends and the other ranks are informed.
LifeRecord run_in_world(
    const sim::WorldOptions& options, Store& store,
    const std::function<std::optional<Error>(const RankSeat& seat, RankRecord& record)>& program);

/// The processor whose memory holds a rank's arrays, and the device that copies them.
struct RankMemory {
  sim::Processor& processor;
  Device& device;
};
/// Returns the memory of a rank. The references stay valid as long as the world exists.
using MemoryOf = std::function<RankMemory(const RankSeat& seat)>;
/// Returns the host's memory and the world's own device.
RankMemory host_memory(const RankSeat& seat);

/// Creates the simulated lane. `memory` decides where each rank keeps its arrays.
std::unique_ptr<Lane> make_sim_lane(const Scenario& scenario, const LaneOptions& options,
                                    MemoryOf memory);

}  // namespace reprise::driver
