#pragma once
// Implements the fabric (reprise/fabric.hpp) with MPI.

#include <cstdint>
#include <memory>
#include <string>

#include "core/adapters/mpi/mpi_session.hpp"
#include "core/ports/call_deadline.hpp"
#include "core/ports/clock.hpp"
#include "core/ports/peer_watch.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

struct MpiLimits {
  std::uint64_t deadline_ns = kDefaultDeadlineNs;  ///< deadline of each call
  /// Buffers are sent in pieces of at most this size, because MPI's counts are of type int.
  std::uint64_t piece_bytes = 1U << 30U;
  PeerWatch* watch = nullptr;  ///< not owned; if null, only the deadline ends a wait
};

/// Creates communicators with MPI_Comm_create_group, so that ranks outside a group need not take
/// part. Every call is started without blocking and polled until it is done. A call fails if its
/// deadline passes (DEADLINE) or the watch reports that a member has ended (PEER_FAILED); both
/// errors state group, operation and rank. MPI_Comm_create_group blocks, so the members first wait
/// for each other with non-blocking calls, which detect a missing member. After an error, a
/// communicator throws that error for every call and is never freed.
class MpiFabric final : public Fabric {
 public:
  /// `session` and `clock` must outlive the fabric and all its communicators. Throws USAGE if the
  /// deadline in `limits` is unusable or if MPI cannot send pieces of the given size.
  MpiFabric(MpiSession& session, Clock& clock, MpiLimits limits);

  GlobalRank rank() const override { return session_.rank(); }
  std::int32_t world_size() const override { return session_.world_size(); }
  /// Creates a communicator of the group. Throws USAGE if this rank is not a member.
  std::shared_ptr<Communicator> communicator(const Group& group) override;

  /// Returns when all members have called this function. Throws the same errors as a collective
  /// call; the messages contain `what`.
  void meet(const Group& group, const std::string& what);

 private:
  MpiSession& session_;
  [[maybe_unused]] Clock& clock_;  // no_mpi.cpp does not use it
  [[maybe_unused]] MpiLimits limits_;
};

}  // namespace reprise
