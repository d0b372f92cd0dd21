#pragma once
// Runs a single rank on a real directory. The rank's memory is host memory unless a device is
// given.

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/adapters/local/solo_fabric.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/load/load.hpp"
#include "core/save/save.hpp"

namespace reprise::bench {

/// Measures how long the phases of saves and loads take.
class PhaseTimes final : public Trace {
 public:
  void event(const TraceEvent& event) override {
    if (!event.detail.empty()) return;  // a step of a phase
    const auto now = std::chrono::steady_clock::now();
    const std::scoped_lock lock(mutex_);
    Phase& phase = phases_[std::string(event.phase)];
    if (event.moment == Moment::kBegin) {
      phase.begun = now;
    } else if (phase.begun) {
      phase.taken += now - *std::exchange(phase.begun, std::nullopt);
      ++phase.times;
    }
  }
  /// Returns the mean of a phase in milliseconds; 0 if it never ended.
  double mean_ms(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    const Phase& phase = phases_[name];
    const double ms = std::chrono::duration<double, std::milli>(phase.taken).count();
    return phase.times == 0 ? 0 : ms / static_cast<double>(phase.times);
  }

 private:
  struct Phase {
    std::optional<std::chrono::steady_clock::time_point> begun;
    std::chrono::steady_clock::duration taken{};
    int times = 0;
  };

  std::mutex mutex_;
  std::map<std::string, Phase> phases_;
};

class SoloRank {
 public:
  explicit SoloRank(const std::string& directory) : store_(directory), device_(host_) {}
  /// Uses the given device for memory, and this many threads beside the rank's own. Keeps a
  /// reference to the device, which must outlive this object.
  SoloRank(const std::string& directory, Device& device, int threads = 1)
      : store_(directory), device_(device), tasks_(threads) {}

  Store& store() { return store_; }
  PhaseTimes& phases() { return phases_; }

  /// Saves, and waits until the save is committed.
  SaveResult save(const StateDict& state, SaveOptions options) {
    if (!options.staging_bytes) options.staging_bytes = kBlockingStaging;
    return begin(state, options).finish();
  }
  /// From now on, keeps the plan of a save for the next ones, as a job does.
  void keep_plans() { plan_.emplace(); }
  /// Begins a save and returns as soon as the job may change the state. The save continues in the
  /// background.
  Save begin(const StateDict& state, const SaveOptions& options) {
    return Save::begin(ports_over(store_), fabric_.communicator(Group::world(1)), state, options,
                       {.plan = plan_ ? &*plan_ : nullptr});
  }

  LoadResult load(StateDict& into, const LoadOptions& options) {
    return load_from(store_, into, options);
  }
  /// Loads from `store` instead of the rank's own store.
  LoadResult load_from(Store& store, StateDict& into, const LoadOptions& options) {
    const auto group = fabric_.communicator(Group::world(1));
    return reprise::load(ports_over(store), *group, into, options);
  }

 private:
  Ports ports_over(Store& store) { return {store, fabric_, device_, tasks_, phases_}; }

  PosixStore store_;
  SoloFabric fabric_;
  HostDevice host_{"bench", 0};
  Device& device_;
  ThreadTasks tasks_{1};
  PhaseTimes phases_;
  std::optional<PlanSlot> plan_;
};

}  // namespace reprise::bench
