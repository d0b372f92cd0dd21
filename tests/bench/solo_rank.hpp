#pragma once
// One rank alone over a real directory, in host memory.

#include <string>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/engine/load.hpp"
#include "core/engine/save.hpp"
#include "sim/job/solo_fabric.hpp"

namespace reprise::bench {

class SoloRank {
 public:
  explicit SoloRank(const std::string& directory) : store_(directory) {}

  Store& store() { return store_; }

  /// Waits for it.
  SaveReport save(const StateDict& state, const std::string& name,
                  ImageOptions image = {.staging_bytes_max = kBlockingStaging}) {
    SaveOptions options{.target = {.directory = name, .step = {}}, .image = image};
    Ports ports = ports_over(store_);
    return Save::begin(ports, fabric_.communicator(Group::world(1)), state, options).finish();
  }

  LoadReport load(StateDict& into, const LoadOptions& options) {
    return load_from(store_, into, options);
  }
  /// Through another store.
  LoadReport load_from(Store& store, StateDict& into, const LoadOptions& options) {
    const auto group = fabric_.communicator(Group::world(1));
    return reprise::load(ports_over(store), *group, into, options);
  }

 private:
  struct NoTrace final : Trace {
    void event(const TraceEvent& event) override { (void)event; }
  };

  Ports ports_over(Store& store) { return {store, fabric_, device_, clock_, tasks_, trace_}; }

  PosixStore store_;
  sim::SoloFabric fabric_;
  HostDevice device_{"bench", 0};
  PosixClock clock_;
  ThreadTasks tasks_{1};
  NoTrace trace_;
};

}  // namespace reprise::bench
