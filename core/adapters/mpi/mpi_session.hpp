#pragma once
// Initialises and finalises MPI in this process.

#include <cstdint>
#include <memory>
#include <string>

#include "core/ports/call_deadline.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// A rank's position among the ranks on its node, and the number of ranks there.
struct NodePlace {
  std::int32_t rank = 0;
  std::int32_t of = 1;
};

/// Only one session may exist per process. The thread that created it makes all MPI calls
/// (MPI_THREAD_FUNNELED). If the program has initialised MPI, it must also finalise it. Throws
/// UNSUPPORTED if built without MPI.
class MpiSession {
 public:
  /// Collective over MPI_COMM_WORLD. Throws DEADLINE if a rank does not arrive.
  explicit MpiSession(std::uint64_t deadline_ns = kDefaultDeadlineNs);
  /// Finalises MPI, unless abandon() was called. After another rank has failed, finalising could
  /// wait forever. In that case, the process should write its record and exit with _Exit.
  ~MpiSession();  // NOLINT(performance-trivially-destructible): in no_mpi.cpp it does nothing
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  GlobalRank rank() const { return rank_; }
  std::int32_t world_size() const { return world_size_; }
  /// Returns MPI's name for this node. Device identities contain it.
  std::string node() const;
  /// Returns this rank's position on its node and the number of ranks there. Collective over all
  /// ranks.
  NodePlace node_place() const;

  /// Returns the session's own communicator of all ranks. It is separate from the program's
  /// communicators, so it never receives the program's messages, and its errors do not reach the
  /// program's error handler.
  const struct MpiWorld& world() const { return *world_; }
  /// True if the destructor will finalise MPI. Finalising waits for all ranks, without a deadline.
  bool finalizes() const { return own_ && !abandoned_; }

  /// Called by a communicator that failed. MPI is not finalised after that.
  void abandon() { abandoned_ = true; }
  bool abandoned() const { return abandoned_; }

 private:
  void enter_world(std::uint64_t deadline_ns);

  GlobalRank rank_;
  std::int32_t world_size_ = 0;
  std::unique_ptr<struct MpiWorld> world_;
  [[maybe_unused]] bool own_ = true;  // no_mpi.cpp does not use it
  bool abandoned_ = false;
};

/// Returns the name and the version of the MPI library; empty if built without MPI.
std::string mpi_version();

}  // namespace reprise
