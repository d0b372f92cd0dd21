// Creates a job over MPI_COMM_WORLD.
#include <exception>
#include <memory>
#include <utility>

#include "core/adapters/mpi/mpi_fabric.hpp"
#include "core/adapters/mpi/mpi_session.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "reprise/error.hpp"
#include "reprise/job.hpp"

namespace reprise {
namespace {

/// Owns the fabric of one rank and the objects that the fabric needs.
struct MpiRank {
  explicit MpiRank(std::uint64_t deadline_ns)
      : session(deadline_ns), fabric(session, clock, {.deadline_ns = deadline_ns}) {}
  MpiRank(const MpiRank&) = delete;
  MpiRank& operator=(const MpiRank&) = delete;
  /// MPI_Finalize returns only after all ranks have called it, so it may block forever. The ranks
  /// therefore meet here first, with a deadline. If a rank does not arrive, MPI is not finalised.
  ~MpiRank() {
    if (!session.finalizes()) return;
    try {
      fabric.meet(Group::world(fabric.world_size()), "the end of the job");
    } catch (const std::exception&) {
      session.abandon();
    }
  }

  MpiSession session;
  PosixClock clock;
  MpiFabric fabric;
};

}  // namespace

Job mpi_job(const std::string& root, const JobOptions& options) {
  if (options.deadline.count() <= 0) {
    throw Error(Code::kUsage, "deadline: a wait ends at some time after it begins");
  }
  JobPorts ports = local_ports(root, options);
  const auto rank = std::make_shared<MpiRank>(static_cast<std::uint64_t>(options.deadline.count()));
  ports.fabric = std::shared_ptr<Fabric>(rank, &rank->fabric);
  return Job(std::move(ports));
}

}  // namespace reprise
