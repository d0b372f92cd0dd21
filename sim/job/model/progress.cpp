#include "sim/job/model/progress.hpp"

namespace reprise::sim {

void LossScale::after_step(bool overflow) {
  if (overflow) {
    scale = scale / 2;
    growth_tracker = 0;
  } else if (++growth_tracker >= growth_interval) {
    scale = scale * 2;
    growth_tracker = 0;
  }
}

void OptimizerSettings::apply(const Schedule& schedule) {
  for (auto& group : groups) {
    group.lr = schedule.lr() * group.lr_mult;
    group.weight_decay = schedule.weight_decay() * group.wd_mult;
  }
}

void OptimizerSettings::after_step(bool overflow, bool stepped) {
  loss_scale.after_step(overflow);
  if (!stepped) return;
  for (auto& group : groups) ++group.step;
}

OptimizerSettings initial_settings(const Schedule& schedule, const LossScale& loss_scale) {
  OptimizerSettings settings{.groups = {GroupSettings{}, GroupSettings{.wd_mult = 0}},
                             .loss_scale = loss_scale};
  settings.apply(schedule);
  return settings;
}

void TrainingProgress::skip() {
  ++iteration;
  consumed_samples += global_batch_size;
}

void TrainingProgress::after_step(bool stepped) {
  skip();
  if (stepped) schedule.num_steps += global_batch_size;
}

TrainingProgress initial_progress(std::uint64_t seed, const Schedule& schedule) {
  TrainingProgress progress;
  progress.seed = seed;
  progress.schedule = schedule;
  return progress;
}

}  // namespace reprise::sim
