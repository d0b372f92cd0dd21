#pragma once
// The job that was never interrupted, whole on one rank: the state after n steps is the same under
// every layout, so one such job serves all ranks of a world and all scenarios of a process that
// train the same.

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/adapters/local/solo_fabric.hpp"
#include "properties/global_state.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {

class Twin;

/// Where a twin begins that is not a fresh job: as another one stood after `at` iterations, but for
/// what its config's `load` leaves behind and for its modules.
struct TwinStart {
  std::shared_ptr<Twin> before;  ///< nullptr: as a fresh job
  Step at = {};

  friend bool operator==(const TwinStart&, const TwinStart&) = default;
};

/// Trains as far as it is asked, and again from the start where an older state is asked for that it
/// did not keep. Any thread. What it answers depends on its config and start alone.
class Twin {
 public:
  /// Of the config counts what is trained; who trains it, and where, does not.
  explicit Twin(const sim::JobConfig& config, TwinStart start = {});

  /// Of the step that completes `step` iterations; at least one after its start.
  sim::StepRecord record(Step step);
  /// In model space, after so many steps. Kept by whoever holds it; the latest kStatesKept that
  /// were asked for are kept here, too.
  std::shared_ptr<const GlobalState> state(Step step);

  bool trains_like(const sim::JobConfig& config, const TwinStart& start = {}) const;
  /// Steps trained in all, for tests of what is trained twice.
  std::int64_t steps_trained();

  static constexpr std::size_t kStatesKept = 16;

 private:
  void train_to(Step step);
  void restart();
  /// A job of its own that has come so far.
  std::unique_ptr<sim::TrainingJob> job_at(Step step);

  sim::JobConfig config_;
  TwinStart start_;
  std::mutex mutex_;
  SoloFabric fabric_;
  std::unique_ptr<sim::TrainingJob> job_;
  std::optional<Step> first_;             ///< iterations at its start, once it was made
  std::vector<sim::StepRecord> records_;  ///< of the iterations since then
  std::list<std::pair<Step, std::shared_ptr<const GlobalState>>> states_;  ///< latest first
  std::int64_t trained_ = 0;
};

/// The twins of a process. Any thread.
class TwinBook {
 public:
  /// The one that trains like a job of this config, made if need be.
  std::shared_ptr<Twin> twin(const sim::JobConfig& config, const TwinStart& start = {});

  static constexpr std::size_t kTwinsKept = 8;

 private:
  std::mutex mutex_;
  std::list<std::shared_ptr<Twin>> twins_;  ///< latest first
};

}  // namespace reprise::driver
