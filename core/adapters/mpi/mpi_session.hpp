#pragma once
// The owner of MPI's life in this process.

#include <cstdint>
#include <memory>
#include <string>

#include "core/ports/patience.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// A rank among those that share its node's memory.
struct NodePlace {
  std::int32_t rank = 0;
  std::int32_t of = 1;
};

/// One per process; all MPI calls come from the thread that made it (MPI_THREAD_FUNNELED). Where
/// the program has initialised MPI itself, it also finalizes it.
/// UNSUPPORTED where the program was built without MPI.
class MpiSession {
 public:
  /// Collective over MPI_COMM_WORLD; DEADLINE if a rank does not come.
  explicit MpiSession(std::uint64_t deadline_ns = kDefaultDeadlineNs);
  /// Finalizes, unless a communicator was abandoned: after a failed peer that could wait for ever,
  /// and the process should write its record and leave by _Exit.
  ~MpiSession();  // NOLINT(performance-trivially-destructible): in no_mpi.cpp it does nothing
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  GlobalRank rank() const { return rank_; }
  std::int32_t world_size() const { return world_size_; }
  /// As MPI knows this node; for device identities.
  std::string node() const;
  /// Collective over the world: this rank among those of its node, and how many these are.
  NodePlace node_place() const;

  /// All ranks, in a communicator of the session's own: the program's receives take no message of
  /// it, and errors return from it whatever the program lets errors do.
  const struct MpiWorld& world() const { return *world_; }
  /// True if the session's end waits for all ranks, without a deadline.
  bool finalizes() const { return own_ && !abandoned_; }

  /// Said by a communicator that failed; from here on MPI is not finalized.
  void abandon() { abandoned_ = true; }
  bool abandoned() const { return abandoned_; }

 private:
  void enter_world(std::uint64_t deadline_ns);

  GlobalRank rank_;
  std::int32_t world_size_ = 0;
  std::unique_ptr<struct MpiWorld> world_;
  [[maybe_unused]] bool own_ = true;  // in no_mpi.cpp
  bool abandoned_ = false;
};

/// Name and version of the MPI library; empty if built without.
std::string mpi_version();

}  // namespace reprise
