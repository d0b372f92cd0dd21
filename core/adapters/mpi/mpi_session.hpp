#pragma once
// Owns MPI's initialisation and finalisation in this process.

#include <cstdint>
#include <memory>
#include <string>

#include "core/ports/patience.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// A rank's position among those that share its node's memory.
struct NodePlace {
  std::int32_t rank = 0;
  std::int32_t of = 1;
};

/// At most one per process; the thread that created it makes all MPI calls (MPI_THREAD_FUNNELED).
/// If the program has initialised MPI itself, it must also finalise it. Throws UNSUPPORTED if built
/// without MPI.
class MpiSession {
 public:
  /// Collective over MPI_COMM_WORLD; throws DEADLINE if a rank does not arrive.
  explicit MpiSession(std::uint64_t deadline_ns = kDefaultDeadlineNs);
  /// Finalises MPI unless a communicator was abandoned: after a peer failed that could wait
  /// forever, and the process should write its record and leave by _Exit.
  ~MpiSession();  // NOLINT(performance-trivially-destructible): in no_mpi.cpp it does nothing
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  GlobalRank rank() const { return rank_; }
  std::int32_t world_size() const { return world_size_; }
  /// Returns MPI's name of this node, for device identities.
  std::string node() const;
  /// Returns this rank's position on its node and the number of ranks there. Collective over all.
  NodePlace node_place() const;

  /// Returns a communicator of all ranks owned by the session: it cannot intercept the program's
  /// messages, and it returns errors whatever error handler the program uses.
  const struct MpiWorld& world() const { return *world_; }
  /// True if ending the session waits for all ranks, without a deadline.
  bool finalizes() const { return own_ && !abandoned_; }

  /// Called by a communicator that failed; from now on MPI is not finalised.
  void abandon() { abandoned_ = true; }
  bool abandoned() const { return abandoned_; }

 private:
  void enter_world(std::uint64_t deadline_ns);

  GlobalRank rank_;
  std::int32_t world_size_ = 0;
  std::unique_ptr<struct MpiWorld> world_;
  [[maybe_unused]] bool own_ = true;  // used in no_mpi.cpp
  bool abandoned_ = false;
};

/// Returns name and version of the MPI library; empty if built without MPI.
std::string mpi_version();

}  // namespace reprise
