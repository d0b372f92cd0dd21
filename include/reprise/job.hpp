#pragma once
// Defines Job: one rank of a job that saves and loads. It owns the store, fabric and device that
// the engine uses.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "reprise/ports.hpp"

namespace reprise REPRISE_API {

/// Ports of one rank. You can replace each port with your own. Only `trace`, `data` and
/// `interrupted` may be null. A job keeps its ports alive.
struct JobPorts {
  std::shared_ptr<Store> store;
  std::shared_ptr<Fabric> fabric;
  std::shared_ptr<Device> device;
  std::shared_ptr<Tasks> tasks;
  std::shared_ptr<Trace> trace = {};
  /// Carries the bytes that a load reads once for several ranks (Reads::kOncePerJob), such as
  /// nccl_fabric(), if `fabric` is not to carry them.
  std::shared_ptr<Fabric> data = {};
  std::function<bool()> interrupted = {};  ///< see JobOptions
};

struct JobOptions {
  /// Longest time a rank waits for the others in one collective call before DEADLINE is thrown.
  std::chrono::nanoseconds deadline = std::chrono::minutes(30);
  /// Number of background threads that write and read. 0: one for each processor that this process
  /// may use, at most 8; launchers that bind ranks to processors divide these among them.
  int threads = 0;
  std::shared_ptr<Trace> trace = {};
  /// Device whose memory holds the tensors, such as cuda_device(). Null means host memory.
  std::shared_ptr<Device> device = {};
  /// Returns true if the job is to stop, such as after Ctrl-C. Asked when a save or a load begins,
  /// before each read, and while it waits for its own writes or (MPI, sockets) for other ranks; all
  /// ranks then throw INTERRUPTED, with the first rank that was told to. A checkpoint whose commit
  /// has begun is committed all the same. Called on the thread of the save or load.
  std::function<bool()> interrupted = {};
  /// Makes the fabric that carries bulk data (JobPorts::data), given the job's own:
  /// [](auto fabric) { return nccl_fabric(fabric, 0); }
  std::function<std::shared_ptr<Fabric>(std::shared_ptr<Fabric> fabric)> data = {};
};

/// A rank's access to the library. A job can be moved; a moved-from job may be destroyed, assigned
/// to and moved from again, and any other use of it throws USAGE. Only one thread at a time may use
/// a job and its saves. A save in flight keeps alive everything it needs from its job.
class Job {
 public:
  /// Collective over all ranks of the fabric. Throws USAGE if a port is null.
  explicit Job(JobPorts ports);
  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;
  ~Job();

  GlobalRank rank() const;
  std::int32_t world_size() const;
  /// Returns references to the job's ports. They are valid while the job lives.
  Ports ports() const;

 private:
  friend struct JobAccess;
  explicit Job(std::shared_ptr<struct JobState> state);
  std::shared_ptr<struct JobState> state_;
};

/// Returns ports for a single-process job. Its checkpoints are below the directory `root`, which is
/// relative to the working directory and need not exist yet. Replace `fabric` to run with more
/// ranks.
JobPorts local_ports(const std::string& root, const JobOptions& options = {});

/// Returns a job that consists of this process only.
Job local_job(const std::string& root, const JobOptions& options = {});

/// Returns a job over all ranks of MPI_COMM_WORLD. The call is collective, and every rank passes
/// the same `root`. If the program has not initialised MPI, this call does, and the job's
/// destructor finalises it. All calls must come from the thread that initialised MPI. Needs the
/// package component "mpi".
Job mpi_job(const std::string& root, const JobOptions& options = {});

}  // namespace REPRISE_API
