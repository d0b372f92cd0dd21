// Creates a job over MPI_COMM_WORLD.
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "core/adapters/mpi/mpi_fabric.hpp"
#include "core/adapters/mpi/mpi_session.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/ports/call_deadline.hpp"
#include "reprise/error.hpp"
#include "reprise/job.hpp"

namespace reprise {
namespace {

/// Knows nothing of other ranks, but when the job was told to stop.
class OwnWatch final : public PeerWatch {
 public:
  explicit OwnWatch(std::function<bool()> interrupted) : interrupted_(std::move(interrupted)) {}
  bool has_ended(GlobalRank /*rank*/) override { return false; }
  bool interrupted() override { return interrupted_ && interrupted_(); }

 private:
  std::function<bool()> interrupted_;
};

/// Owns the fabric of one rank and the objects that the fabric needs.
struct MpiRank {
  MpiRank(std::uint64_t deadline_ns, std::function<bool()> interrupted)
      : session(deadline_ns),
        watch(std::move(interrupted)),
        fabric(session, clock, {.deadline_ns = deadline_ns, .watch = &watch}) {}
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
  OwnWatch watch;
  MpiFabric fabric;
};

}  // namespace

Job mpi_job(const std::string& root, const JobOptions& options) {
  const std::uint64_t deadline_ns = required_deadline(options.deadline);
  JobPorts ports = local_ports(root, options);
  const auto rank = std::make_shared<MpiRank>(deadline_ns, options.interrupted);
  ports.fabric = std::shared_ptr<Fabric>(rank, &rank->fabric);
  if (options.data) ports.data = options.data(ports.fabric);
  return Job(std::move(ports));
}

}  // namespace reprise
