#pragma once
// The owner of MPI's life in this process.

#include <cstdint>
#include <string>

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
  MpiSession();
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

  /// Said by a communicator that failed; from here on MPI is not finalized.
  void abandon() { abandoned_ = true; }
  bool abandoned() const { return abandoned_; }

 private:
  GlobalRank rank_;
  std::int32_t world_size_ = 0;
  [[maybe_unused]] bool own_ = true;  // in no_mpi.cpp
  bool abandoned_ = false;
};

/// Name and version of the MPI library; empty if built without.
std::string mpi_version();

}  // namespace reprise
