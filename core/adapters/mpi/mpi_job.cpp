// A job over MPI_COMM_WORLD.
#include <memory>
#include <utility>

#include "core/adapters/mpi/mpi_fabric.hpp"
#include "core/adapters/mpi/mpi_session.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "reprise/error.hpp"
#include "reprise/job.hpp"

namespace reprise {
namespace {

/// The fabric with all that it borrows.
struct MpiWorld {
  explicit MpiWorld(std::chrono::nanoseconds deadline)
      : fabric(session, clock, {.deadline_ns = static_cast<std::uint64_t>(deadline.count())}) {}

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
  const auto world = std::make_shared<MpiWorld>(options.deadline);
  ports.fabric = std::shared_ptr<Fabric>(world, &world->fabric);
  return Job(std::move(ports));
}

}  // namespace reprise
