#pragma once
// The job that was never interrupted, whole on one rank: the state after n steps is the same under
// every layout, so one such job serves all ranks of a world and all scenarios of a process that
// train the same.

#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "properties/global_state.hpp"
#include "sim/job/job.hpp"
#include "sim/job/solo_fabric.hpp"

namespace reprise::driver {

/// Trains as far as it is asked, and again from the start where an older state is asked for that it
/// did not keep. Any thread. What it answers depends on its config alone.
class Twin {
 public:
  /// Of the config counts what is trained; who trains it, and where, does not.
  explicit Twin(const sim::JobConfig& config);

  /// Of the step that completes `step` iterations; at least 1.
  sim::StepRecord record(Step step);
  /// In model space, after so many steps. Kept by whoever holds it; the latest kStatesKept that
  /// were asked for are kept here, too.
  std::shared_ptr<const GlobalState> state(Step step);

  bool trains_like(const sim::JobConfig& config) const;
  /// Steps trained in all, for tests of what is trained twice.
  std::int64_t steps_trained();

  static constexpr std::size_t kStatesKept = 16;

 private:
  void train_to(Step step);
  void restart();

  sim::JobConfig config_;
  std::mutex mutex_;
  sim::SoloFabric fabric_;
  std::unique_ptr<sim::TrainingJob> job_;
  std::vector<sim::StepRecord> records_;  ///< records_[i] completes i + 1 iterations
  std::list<std::pair<Step, std::shared_ptr<const GlobalState>>> states_;  ///< latest first
  std::int64_t trained_ = 0;
};

/// The twins of a process. Any thread.
class TwinBook {
 public:
  /// The one that trains like a job of this config, made if need be.
  std::shared_ptr<Twin> twin(const sim::JobConfig& config);

  static constexpr std::size_t kTwinsKept = 8;

 private:
  std::mutex mutex_;
  std::list<std::shared_ptr<Twin>> twins_;  ///< latest first
};

}  // namespace reprise::driver
