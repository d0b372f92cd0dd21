#pragma once
// Defines the hardware that a rank uses on a lane with real processes: memory, arithmetic and
// communication.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/adapters/mpi/mpi_session.hpp"
#include "core/ports/clock.hpp"
#include "core/ports/peer_watch.hpp"
#include "driver/language/scenario.hpp"
#include "reports/report.hpp"
#include "reprise/device.hpp"
#include "reprise/fabric.hpp"
#include "sim/job/model/processor.hpp"

namespace reprise::driver {

class RankHardware {
 public:
  virtual ~RankHardware() = default;
  /// Returns the fabric of Ports::data; null if there is none.
  virtual Fabric* data() = 0;
  virtual Device& device() = 0;
  virtual sim::Processor& processor() = 0;
  /// Returns the rank's GPU and how NCCL has sent its data so far; empty on the host.
  virtual std::optional<reports::RankGpu> gpu() const = 0;
  /// True if a failure left resources that this rank can free only together with its peers.
  virtual bool abandoned() const = 0;
  /// Frees unused resources that ranks can free only together; collective over the world.
  /// `all_well` is true if the ranks have agreed that all of them ended well and none has abandoned
  /// anything. Returns false if the process must exit by calling _Exit.
  virtual bool close(bool all_well) = 0;
};

/// The session and fabric that every rank needs, whatever its hardware. The referenced objects must
/// outlive the hardware.
struct RankBase {
  MpiSession& session;
  Fabric& mpi;
  Clock& clock;
  PeerWatch& watch;
  std::uint64_t deadline_ns = 0;   ///< time limit of a collective
  std::string log_directory = {};  ///< for NCCL's log
};

/// Creates the hardware of this rank. For kMpi, it consists of host memory and MPI. For kGpu, it
/// consists of one of the node's devices and of NCCL, which is set up over MPI. Collective over the
/// world. NCCL carries data alone: its calls end in half of the time limit, so that a rank whose
/// device fails finds the others on MPI before they give up. Throws UNSUPPORTED if the program was
/// built without that lane or there is no device.
std::unique_ptr<RankHardware> make_hardware(LaneKind lane, const RankBase& base);

}  // namespace reprise::driver
