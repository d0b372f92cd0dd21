#pragma once
// The fabric over MPI.

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
  std::uint64_t deadline_ns = kDefaultDeadlineNs;  ///< for each call
  std::uint64_t piece_bytes = 1U << 30U;  ///< buffers go in pieces of this: counts are int in MPI
  PeerWatch* watch = nullptr;             ///< borrowed; without one the deadline alone tells
};

/// Communicators by MPI_Comm_create_group, so that ranks outside of a group take no part. Every
/// call is started without blocking and tested until it is done, until its deadline has passed
/// (DEADLINE) or until the watch says that a member has ended (PEER_FAILED); both name group,
/// operation and rank. The members of a new communicator meet in the same way before it is made:
/// MPI's own making of it blocks, and is begun only when all have come. After an error a
/// communicator repeats that error; it is never freed.
class MpiFabric final : public Fabric {
 public:
  /// `session` and `clock` are borrowed and outlive the fabric; communicators outlive neither.
  /// USAGE for limits that no call could keep.
  MpiFabric(MpiSession& session, Clock& clock, MpiLimits limits);

  GlobalRank rank() const override { return session_.rank(); }
  std::int32_t world_size() const override { return session_.world_size(); }
  /// USAGE if this rank is no member.
  std::shared_ptr<Communicator> communicator(const Group& group) override;

  /// Returns when all members have come; errors as of every other call, with `what` in them.
  void meet(const Group& group, const std::string& what);

 private:
  MpiSession& session_;
  [[maybe_unused]] Clock& clock_;  // in no_mpi.cpp
  [[maybe_unused]] MpiLimits limits_;
};

}  // namespace reprise
