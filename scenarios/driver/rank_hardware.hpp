#pragma once
// What a rank of a lane with real processes works on: memory, arithmetic, the way to its peers.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/adapters/mpi/mpi_session.hpp"
#include "core/ports/clock.hpp"
#include "core/ports/peer_watch.hpp"
#include "reprise/device.hpp"
#include "reprise/fabric.hpp"
#include "scenarios/driver/scenario.hpp"
#include "sim/job/processor.hpp"

namespace reprise::driver {

class RankHardware {
 public:
  virtual ~RankHardware() = default;
  virtual Fabric& fabric() = 0;
  virtual Device& device() = 0;
  virtual sim::Processor& processor() = 0;
  /// True once something failed between this rank and its peers that they would have to free
  /// together.
  virtual bool abandoned() const = 0;
  /// Frees what peers can only free together, of which nothing is used any more; collective over
  /// the world. `all_well`: so did all ranks end, and none has abandoned anything; they agree on
  /// that before. False if the process is to leave by _Exit.
  virtual bool close(bool all_well) = 0;
};

/// What every rank has, whatever it works on. Borrowed.
struct RankBase {
  MpiSession& session;
  Fabric& mpi;
  Clock& clock;
  PeerWatch& watch;
  std::uint64_t deadline_ns = 0;  ///< of a collective
};

/// kMpi: host memory, and MPI between ranks. kGpu: the memory of one of the node's devices, and
/// NCCL, which MPI introduces the ranks to. Collective over the world. UNSUPPORTED where the
/// program was built without, or there is no device.
std::unique_ptr<RankHardware> make_hardware(LaneKind lane, const RankBase& base);

/// What a machine has for ranks.
struct GpuRoom {
  std::size_t devices = 0;
  std::string why_none;  ///< where there are none
  std::int32_t ranks_per_gpu = 1;
};

/// Why so many ranks can't run on this machine's devices, or in that room; nothing if they can.
std::optional<std::string> why_no_gpus(std::int32_t ranks, std::int32_t ranks_per_gpu);
std::optional<std::string> why_no_room(std::int32_t ranks, const GpuRoom& room);

}  // namespace reprise::driver
