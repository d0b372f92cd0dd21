#pragma once
// Waiting for MPI without waiting for ever. Included by this folder's sources only.

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/adapters/mpi/mpi_fabric.hpp"
#include "core/geometry/group.hpp"
#include "core/ports/clock.hpp"

namespace reprise {

/// One call's patience: it may consist of several MPI operations, all of which share its deadline.
class MpiWait {
 public:
  /// All is borrowed for the call. `describe` says what is waited for, for messages.
  MpiWait(Clock& clock, const MpiLimits& limits, const Group& group, GlobalRank self,
          std::function<std::string()> describe);

  /// Starts an operation and tests it until it is done. DEADLINE when the time is over; PEER_FAILED
  /// where MPI says so, or the watch that a member has ended. The operation is then still pending.
  void finish(const std::function<int(MPI_Request*)>& start);

 private:
  void look();
  std::optional<GlobalRank> ended_member() const;

  Clock& clock_;
  const MpiLimits& limits_;
  const Group& group_;
  GlobalRank self_;
  std::function<std::string()> describe_;
  std::uint64_t give_up_at_ns_;
  std::uint64_t next_look_ns_;
  std::optional<std::pair<GlobalRank, std::uint64_t>> ended_;  ///< who, and when it was seen
};

}  // namespace reprise
