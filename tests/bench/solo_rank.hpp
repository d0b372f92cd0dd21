#pragma once
// Runs a single rank on a real directory. The rank's memory is host memory unless a device is
// given.

#include <string>

#include "core/adapters/local/solo_fabric.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/load/load.hpp"
#include "core/save/save.hpp"

namespace reprise::bench {

class SoloRank {
 public:
  explicit SoloRank(const std::string& directory) : store_(directory), device_(host_) {}
  /// Uses the given device for memory. Keeps a reference to it, so the device must outlive this
  /// object.
  SoloRank(const std::string& directory, Device& device) : store_(directory), device_(device) {}

  Store& store() { return store_; }

  /// Saves, and waits until the save is committed.
  SaveReport save(const StateDict& state, const std::string& name,
                  ImageOptions image = {.staging_bytes_max = kBlockingStaging}) {
    return begin(state, name, image).finish();
  }
  /// Begins a save and returns as soon as the job may change the state. The save continues in the
  /// background.
  Save begin(const StateDict& state, const std::string& name, const ImageOptions& image) {
    SaveSettings options{.target = {.directory = name, .step = {}}, .image = image};
    return Save::begin(ports_over(store_), fabric_.communicator(Group::world(1)), state, options);
  }

  LoadReport load(StateDict& into, const LoadSettings& options) {
    return load_from(store_, into, options);
  }
  /// Loads from `store` instead of the rank's own store.
  LoadReport load_from(Store& store, StateDict& into, const LoadSettings& options) {
    const auto group = fabric_.communicator(Group::world(1));
    return reprise::load(ports_over(store), *group, into, options);
  }

 private:
  Ports ports_over(Store& store) { return {store, fabric_, device_, tasks_, trace_}; }

  PosixStore store_;
  SoloFabric fabric_;
  HostDevice host_{"bench", 0};
  Device& device_;
  ThreadTasks tasks_{1};
  NoTrace trace_;
};

}  // namespace reprise::bench
