#pragma once
// The fabric over MPI.

#include <cstdint>
#include <memory>

#include "core/adapters/mpi/mpi_session.hpp"
#include "core/ports/clock.hpp"
#include "core/ports/fabric.hpp"

namespace reprise {

struct MpiLimits {
  std::uint64_t deadline_ns = 0;          ///< for each call
  std::uint64_t piece_bytes = 1U << 30U;  ///< buffers go in pieces of this: counts are int in MPI
};

/// Communicators by MPI_Comm_create_group, so that ranks outside of a group take no part. Every
/// call is started without blocking and tested until its deadline has passed: DEADLINE, naming
/// group, operation and rank. Only the making of a communicator is left to MPI: ask for them while
/// all members are known to live. After an error a communicator repeats that error; it is never
/// freed.
class MpiFabric final : public Fabric {
 public:
  /// `session` and `clock` are borrowed and outlive the fabric; communicators outlive neither.
  MpiFabric(MpiSession& session, Clock& clock, MpiLimits limits);

  GlobalRank rank() const override { return session_.rank(); }
  std::int32_t world_size() const override { return session_.world_size(); }
  /// USAGE if this rank is no member.
  std::shared_ptr<Communicator> communicator(const Group& group) override;

 private:
  MpiSession& session_;
  [[maybe_unused]] Clock& clock_;  // in no_mpi.cpp
  [[maybe_unused]] MpiLimits limits_;
};

}  // namespace reprise
