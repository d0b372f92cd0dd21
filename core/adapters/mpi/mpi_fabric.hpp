#pragma once
// Implements the fabric with MPI.

#include <cstdint>
#include <memory>
#include <string>

#include "core/adapters/mpi/mpi_session.hpp"
#include "core/ports/clock.hpp"
#include "core/ports/patience.hpp"
#include "core/ports/peer_watch.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

struct MpiLimits {
  std::uint64_t deadline_ns = kDefaultDeadlineNs;  ///< per call
  std::uint64_t piece_bytes = 1U << 30U;  ///< buffers are cut into pieces, as MPI's counts are int
  PeerWatch* watch = nullptr;             ///< borrowed; null: only the deadline ends a wait
};

/// Creates communicators with MPI_Comm_create_group, so that ranks outside a group take no part.
/// Every call is started without blocking and tested until it is done, its deadline has passed
/// (DEADLINE), or the watch reports that a member has ended (PEER_FAILED); both errors name group,
/// operation and rank. The members of a new communicator meet in the same way first, because
/// creating it blocks in MPI and must begin only when all have arrived. After an error a
/// communicator repeats that error; it is never freed.
class MpiFabric final : public Fabric {
 public:
  /// Borrows `session` and `clock`, which must outlive the fabric; both must outlive communicators.
  /// Throws USAGE for limits that no call could meet.
  MpiFabric(MpiSession& session, Clock& clock, MpiLimits limits);

  GlobalRank rank() const override { return session_.rank(); }
  std::int32_t world_size() const override { return session_.world_size(); }
  /// Throws USAGE if this rank is not a member.
  std::shared_ptr<Communicator> communicator(const Group& group) override;

  /// Returns when all members have arrived; errors are those of any other call and mention `what`.
  void meet(const Group& group, const std::string& what);

 private:
  MpiSession& session_;
  [[maybe_unused]] Clock& clock_;  // used in no_mpi.cpp
  [[maybe_unused]] MpiLimits limits_;
};

}  // namespace reprise
