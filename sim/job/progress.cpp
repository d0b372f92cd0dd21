#include "sim/job/progress.hpp"

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

void Progress::apply_schedule() {
  for (auto& group : groups) {
    group.lr = schedule.lr() * group.lr_mult;
    group.weight_decay = schedule.weight_decay() * group.wd_mult;
  }
}

void Progress::skip() {
  ++iteration;
  consumed_samples += global_batch_size;
}

void Progress::after_step(bool overflow) {
  skip();
  loss_scale.after_step(overflow);
  if (overflow) return;
  for (auto& group : groups) ++group.step;
  schedule.num_steps += global_batch_size;
  apply_schedule();
}

Progress initial_progress(std::uint64_t seed, const Schedule& schedule) {
  Progress progress;
  progress.seed = seed;
  progress.schedule = schedule;
  auto& plain = progress.groups[static_cast<std::size_t>(ParameterGroup::kPlain)];
  plain.wd_mult = 0;
  progress.apply_schedule();
  return progress;
}

}  // namespace reprise::sim
