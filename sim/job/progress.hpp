#pragma once
// Everything of a job that is one number for many ranks: counters and schedule for all of them,
// loss scale and settings for those that share an optimizer. All of it enters the next steps.

#include <cstdint>
#include <vector>

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
  double wd_mult = 1;  ///< 0: no weight decay
  bool of_experts = false;
  std::int64_t step = 0;  ///< updates done
  /// Of the parameters that this rank's optimizer updates by it: their places in its list. They are
  /// of the running job: a checkpoint holds none.
  std::vector<std::int64_t> params = {};

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

/// What an optimizer is told beside its tensors: one of a chain, or all of a chain that keep theirs
/// together.
struct OptimizerSettings {
  std::vector<GroupSettings> groups;
  LossScale loss_scale;

  /// Puts the schedule's present values into the groups.
  void apply(const Schedule& schedule);
  /// What a step leaves behind: its own overflow moves the loss scale, and where the world has
  /// `stepped` the step counts move. The schedule is applied apart.
  void after_step(bool overflow, bool stepped);

  friend bool operator==(const OptimizerSettings&, const OptimizerSettings&) = default;
};

/// Of a fresh optimizer: one group of matrices, one of vectors and scalars without weight decay.
OptimizerSettings initial_settings(const Schedule& schedule, const LossScale& loss_scale = {});

struct Progress {
  std::uint64_t seed = 0;  ///< of data and gradients
  std::int64_t iteration = 0;
  std::int64_t consumed_samples = 0;  ///< the data cursor
  std::int64_t global_batch_size = 8;
  Schedule schedule;

  /// What a step leaves behind. Where nothing has `stepped` the data cursor and the iteration move,
  /// and the schedule stands.
  void after_step(bool stepped);
  /// An iteration that only consumes its samples: nothing else moves.
  void skip();

  friend bool operator==(const Progress&, const Progress&) = default;
};

/// Before the first step.
Progress initial_progress(std::uint64_t seed, const Schedule& schedule);

}  // namespace reprise::sim
