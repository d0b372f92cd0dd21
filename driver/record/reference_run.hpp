#pragma once
// Runs the uninterrupted job, called the reference run, which has the whole model on one rank. The
// state of a reference run after n steps does not depend on any layout. One reference run therefore
// serves all ranks of a world, and all scenarios in this process that train in the same way.

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

class ReferenceRun;

/// The start of a reference run that begins not as a fresh job, but with the state of another
/// reference run after `at` iterations. Two kinds of state are fresh even then: parts that the
/// config's `load` leaves out, and modules that the other reference run lacks.
struct ReferenceStart {
  std::shared_ptr<ReferenceRun> before;  ///< null for a fresh job
  Step at = {};

  friend bool operator==(const ReferenceStart&, const ReferenceStart&) = default;
};

/// Trains as far as callers request. If a caller requests an older state that was not kept, the
/// reference run trains again from the start. Thread-safe. The results depend only on `config` and
/// `start`.
class ReferenceRun {
 public:
  /// Uses only the parts of `config` that affect training; ignores ranks and devices.
  explicit ReferenceRun(const sim::JobConfig& config, ReferenceStart start = {});

  /// Returns the record of iteration `step`, which must be later than the reference run's start.
  sim::StepRecord record(Step step);
  /// Returns the state in model space after `step` steps. Callers share ownership. The reference
  /// run itself keeps the kStatesKept most recently requested states.
  std::shared_ptr<const GlobalState> state(Step step);

  bool trains_like(const sim::JobConfig& config, const ReferenceStart& start = {}) const;
  /// Returns the number of steps trained in total, for tests of repeated training.
  std::int64_t steps_trained();

  static constexpr std::size_t kStatesKept = 16;

 private:
  void train_to(Step step);
  void restart();
  /// Returns a new job that has trained up to `step`.
  std::unique_ptr<sim::TrainingJob> job_at(Step step);

  sim::JobConfig config_;
  ReferenceStart start_;
  std::mutex mutex_;
  SoloFabric fabric_;
  std::unique_ptr<sim::TrainingJob> job_;
  /// Number of iterations that job_ had at its start; empty if there is no job_.
  std::optional<Step> first_;
  std::vector<sim::StepRecord> records_;  ///< one per iteration since the start
  std::list<std::pair<Step, std::shared_ptr<const GlobalState>>> states_;  ///< latest use first
  std::int64_t trained_ = 0;
};

/// The reference runs of a process. Thread-safe.
class ReferenceRuns {
 public:
  /// Returns the reference run that trains like a job of this config; creates it if there is none.
  std::shared_ptr<ReferenceRun> get(const sim::JobConfig& config, const ReferenceStart& start = {});

  static constexpr std::size_t kReferencesKept = 8;

 private:
  std::mutex mutex_;
  std::list<std::shared_ptr<ReferenceRun>> references_;  ///< most recently used first
};

}  // namespace reprise::driver
