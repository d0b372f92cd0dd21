#pragma once
// Tells a test about the ranks on which it runs. These are processes of mpirun (mpi_ranks.cpp), or
// fibers over the model of NCCL (tests/models/nccl).

#include <cstdint>
#include <functional>
#include <memory>

#include "core/ports/clock.hpp"
#include "reprise/fabric.hpp"

namespace reprise::contracts {

/// NcclLimits::piece_bytes of tests that do not care: a communicator allocates as much, and the
/// model fills what is allocated.
inline constexpr std::uint64_t kFewBytes = std::uint64_t{1} << 16U;

/// One rank of a test.
class NcclRank {
 public:
  virtual ~NcclRank() = default;
  /// Returns a new fabric that introduces members to each other. Collective: all ranks ask for the
  /// same ones in the same order. A call of it ends after `deadline_ns`.
  virtual std::unique_ptr<Fabric> bootstrap(std::uint64_t deadline_ns) = 0;
  virtual Clock& clock() = 0;
  virtual int device() const = 0;
};

/// Runs `body` on every rank, or skips the test if NCCL can't run here. The model runs it for
/// several numbers of ranks.
void on_ranks(const std::function<void(NcclRank&)>& body);

}  // namespace reprise::contracts
