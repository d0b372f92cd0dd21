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

std::string_view name_of(GroupField field) {
  switch (field) {
    case GroupField::kWdMult:
      return "wd_mult";
    case GroupField::kLrMult:
      return "lr_mult";
    case GroupField::kOfExperts:
      return "is_expert_parallel";
  }
  return "";
}

OptimizerSettings initial_settings(const Schedule& schedule, const LossScale& loss_scale,
                                   GroupField field) {
  GroupSettings plain;
  if (field == GroupField::kWdMult) plain.wd_mult = 0;
  if (field == GroupField::kLrMult) plain.lr_mult = 0.5;
  plain.of_experts = field == GroupField::kOfExperts;
  OptimizerSettings settings{.groups = {GroupSettings{}, plain}, .loss_scale = loss_scale};
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
