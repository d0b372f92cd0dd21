#pragma once
// Ranks as threads of the test's process with one real directory: the smallest world in which the
// engine runs on several ranks.

#include <functional>
#include <memory>
#include <string>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "reprise/ports.hpp"
#include "tests/contracts/thread_fabric.hpp"

namespace reprise::contracts {

/// Runs `body` once per rank, each time on a separate thread and with separate ports. Rethrows the
/// exception of the lowest-numbered rank that failed. `wrap` may decorate a rank's store.
using WrapStore = std::function<std::unique_ptr<Store>(Store&, GlobalRank)>;
inline void run_ranks(std::int32_t world, const std::string& directory,
                      const std::function<void(const Ports&)>& body, const WrapStore& wrap = {}) {
  run_world(world, [&](Fabric& fabric) {
    PosixStore store(directory);
    const auto wrapped = wrap ? wrap(store, fabric.rank()) : nullptr;
    HostDevice device("node", fabric.rank().value);
    ThreadTasks tasks(1);
    NoTrace trace;
    body({wrapped ? *wrapped : store, fabric, device, tasks, trace});
  });
}

}  // namespace reprise::contracts
