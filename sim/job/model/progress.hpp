#pragma once
// Defines values of a job that many ranks share. Counters and schedule are the same on all ranks;
// loss scale and settings are the same on ranks that share an optimizer. All of them affect the
// next steps.

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/job/model/model.hpp"
#include "sim/job/model/schedule.hpp"

namespace reprise::sim {

/// The one identifier in which an optimizer's two parameter groups differ.
enum class GroupField : std::uint8_t {
  kWdMult,     ///< plain parameters have no weight decay
  kLrMult,     ///< plain parameters have half the rate, and weight decay like the others
  kOfExperts,  ///< plain parameters count as experts' parameters; they train like the others
};
/// Returns the name of the field in a checkpoint, such as "lr_mult".
std::string_view name_of(GroupField field);

/// Adam's settings for one parameter group.
struct GroupSettings {
  double lr = 0;  ///< rate of the next step; the schedule sets it after each step
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double lr_mult = 1;
  double wd_mult = 1;  ///< multiplier of the weight decay; 0 means no weight decay
  bool of_experts = false;
  std::int64_t step = 0;  ///< number of updates done
  /// Indices of the parameters that this rank's optimizer updates with these settings. The indices
  /// belong to the running job and are not in a checkpoint.
  std::vector<std::int64_t> params = {};

  friend bool operator==(const GroupSettings&, const GroupSettings&) = default;
};

/// The scale doubles after `growth_interval` good steps and is halved by an overflow. The largest
/// gradients are near 1, and the largest finite half is 65504, so a scale of 65536 overflows.
struct LossScale {
  double scale = 32768;
  std::int64_t growth_tracker = 0;  ///< good steps since the last change
  std::int64_t growth_interval = 3;

  bool overflows() const { return !(scale <= 65504); }
  void after_step(bool overflow);

  friend bool operator==(const LossScale&, const LossScale&) = default;
};

/// The state of an optimizer except its tensors. Several optimizers may share one stored copy of
/// it.
struct OptimizerSettings {
  std::vector<GroupSettings> groups;
  LossScale loss_scale;

  /// Copies the current values of the schedule to the groups.
  void apply(const Schedule& schedule);
  /// Updates the settings after a step. An `overflow` of this optimizer changes the loss scale.
  /// `stepped` says whether the whole world made the step; only then do the step counts advance.
  /// The schedule is applied separately.
  void after_step(bool overflow, bool stepped);

  friend bool operator==(const OptimizerSettings&, const OptimizerSettings&) = default;
};

/// Returns fresh settings with two groups: matrices, and vectors and scalars without weight decay.
OptimizerSettings initial_settings(const Schedule& schedule, const LossScale& loss_scale = {},
                                   GroupField field = GroupField::kWdMult);

struct TrainingProgress {
  std::uint64_t seed = 0;  ///< seed of data and gradients
  std::int64_t iteration = 0;
  std::int64_t consumed_samples = 0;  ///< the data cursor
  std::int64_t global_batch_size = 8;
  Schedule schedule;

  /// Applies the effect of a step. Data cursor and iteration always advance. The schedule advances
  /// only if `stepped` is true, that is, if the whole world made the step.
  void after_step(bool stepped);
  /// Applies an iteration that consumes its samples and changes nothing else.
  void skip();

  friend bool operator==(const TrainingProgress&, const TrainingProgress&) = default;
};

/// Returns the progress before the first step.
TrainingProgress initial_progress(std::uint64_t seed, const Schedule& schedule);

}  // namespace reprise::sim
