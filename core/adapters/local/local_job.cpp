#include <utility>

#include "core/adapters/local/solo_fabric.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "reprise/error.hpp"
#include "reprise/job.hpp"

namespace reprise {

JobPorts local_ports(const std::string& root, const JobOptions& options) {
  if (options.threads < 0) throw Error(Code::kUsage, "threads: a number below 0");
  return {.store = std::make_shared<PosixStore>(root),
          .fabric = std::make_shared<SoloFabric>(),
          .device = options.device ? options.device : std::make_shared<HostDevice>("host", 0),
          .tasks = std::make_shared<ThreadTasks>(threads_or_usual(options.threads)),
          .trace = options.trace,
          .interrupted = options.interrupted};
}

Job local_job(const std::string& root, const JobOptions& options) {
  return Job(local_ports(root, options));
}

}  // namespace reprise
