#pragma once
// One rank of a job that saves and loads: it owns what the engine needs of the world.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "reprise/ports.hpp"

namespace reprise REPRISE_API {

/// The ports of one rank, each replaceable by one of your own. None is null, but `trace` may be:
/// then events are dropped. A job keeps them alive.
struct JobPorts {
  std::shared_ptr<Store> store;
  std::shared_ptr<Fabric> fabric;
  std::shared_ptr<Device> device;
  std::shared_ptr<Tasks> tasks;
  std::shared_ptr<Trace> trace = {};
};

struct JobOptions {
  /// How long a rank waits for the others in one collective call before it fails with DEADLINE.
  std::chrono::nanoseconds deadline = std::chrono::minutes(30);
  int threads = 1;  ///< that write in the background
  std::shared_ptr<Trace> trace = {};
  /// Device in whose memory the tensors live, such as cuda_device(). Null: the host.
  std::shared_ptr<Device> device = {};
};

/// Movable, and moved from it takes no calls. A job and all saves of it belong to one thread at a
/// time. Saves in flight keep what they need of their job alive.
class Job {
 public:
  /// Collective over all ranks of the fabric. USAGE if a port is null.
  explicit Job(JobPorts ports);
  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;
  ~Job();

  GlobalRank rank() const;
  std::int32_t world_size() const;
  /// Borrowed from the job.
  Ports ports() const;

 private:
  friend struct JobAccess;
  std::shared_ptr<struct JobState> state_;
};

/// Ports of a process that is alone: checkpoints below the directory `root` (relative to the
/// working directory; it need not exist yet), one rank. Replace `fabric` for
/// more.
JobPorts local_ports(const std::string& root, const JobOptions& options = {});

/// A job of this process alone.
Job local_job(const std::string& root, const JobOptions& options = {});

/// A job of all ranks of MPI_COMM_WORLD; every rank sees the same `root`. Collective. Initialises
/// MPI, and finalises it with the job, unless the program has done so itself. All calls come from
/// the thread that initialised MPI. Needs the package's component "mpi".
Job mpi_job(const std::string& root, const JobOptions& options = {});

}  // namespace REPRISE_API
