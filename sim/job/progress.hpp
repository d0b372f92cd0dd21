#pragma once
// Everything of a job that is one number for all ranks: counters, schedule, loss scale, settings of
// the optimizer. All of it is common state, and all of it enters the next steps.

#include <array>
#include <cstdint>

#include "sim/job/model.hpp"
#include "sim/job/schedule.hpp"

namespace reprise::sim {

/// A parameter group of Adam.
struct GroupSettings {
  double lr = 0;  ///< for the next step; the schedule sets it after each
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double lr_mult = 1;
  double wd_mult = 1;     ///< 0: no weight decay
  std::int64_t step = 0;  ///< updates done

  friend bool operator==(const GroupSettings&, const GroupSettings&) = default;
};

/// The scale grows after `growth_interval` good steps and is halved by an overflow. The largest
/// gradients are near 1, and the largest finite half is 65504, so 65536 overflows.
struct LossScale {
  double scale = 32768;
  std::int64_t growth_tracker = 0;  ///< good steps since it last changed
  std::int64_t growth_interval = 3;

  bool overflows() const { return !(scale <= 65504); }
  void after_step(bool overflow);

  friend bool operator==(const LossScale&, const LossScale&) = default;
};

struct Progress {
  std::uint64_t seed = 0;  ///< of data and gradients
  std::int64_t iteration = 0;
  std::int64_t consumed_samples = 0;  ///< the data cursor
  std::int64_t global_batch_size = 8;
  std::array<GroupSettings, kParameterGroups> groups{};
  Schedule schedule;
  LossScale loss_scale;

  /// Puts the schedule's present values into the groups.
  void apply_schedule();
  /// What a step leaves behind. An overflow moves the data cursor, the iteration and the loss
  /// scale, but neither the optimizer's step counts nor the schedule.
  void after_step(bool overflow);
  /// An iteration that only consumes its samples: nothing else moves.
  void skip();

  friend bool operator==(const Progress&, const Progress&) = default;
};

/// Before the first step.
Progress initial_progress(std::uint64_t seed, const Schedule& schedule);

}  // namespace reprise::sim
