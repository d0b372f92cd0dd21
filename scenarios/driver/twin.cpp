#include "scenarios/driver/twin.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace reprise::driver {

Twin::Twin(const sim::JobConfig& config) {
  config_.model = config.model;
  config_.seed = config.seed;
  config_.optimizer_sharding = config.optimizer_sharding;
  config_.schedule = config.schedule;
  config_.shard_dim = config.shard_dim;
  config_.rerun_options.skip = config.rerun_options.skip;
}

sim::StepRecord Twin::record(Step step) {
  CHECK(step.value >= 1, step);
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(step.value - 1);
  if (at >= records_.size()) train_to(step);
  return records_[at];
}

std::shared_ptr<const GlobalState> Twin::state(Step step) {
  CHECK(step.value >= 0, step);
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(states_.begin(), states_.end(),
                                  [step](const auto& kept) { return kept.first == step; });
  if (known != states_.end()) {
    states_.splice(states_.begin(), states_, known);
    return states_.front().second;
  }
  train_to(step);
  const StateDict whole = job_->model_space();
  const RankState rank{GlobalRank{0}, &whole};
  Rulings rulings;
  auto state = std::make_shared<const GlobalState>(assemble({&rank, 1}, rulings));
  CHECK(rulings.empty(), rulings.front());
  states_.emplace_front(step, state);
  if (states_.size() > kStatesKept) states_.pop_back();
  return state;
}

bool Twin::trains_like(const sim::JobConfig& config) const {
  return config.model == config_.model && config.seed == config_.seed &&
         config.optimizer_sharding == config_.optimizer_sharding &&
         config.schedule == config_.schedule &&
         config.rerun_options.skip == config_.rerun_options.skip;
}

std::int64_t Twin::steps_trained() {
  const std::lock_guard lock(mutex_);
  return trained_;
}

void Twin::train_to(Step step) {
  if (!job_ || step < job_->iteration()) restart();
  while (job_->iteration() < step) {
    const sim::StepRecord record = job_->step();
    ++trained_;
    if (static_cast<std::int64_t>(records_.size()) < record.step.value) records_.push_back(record);
  }
}

void Twin::restart() { job_ = std::make_unique<sim::TrainingJob>(config_, fabric_); }

std::shared_ptr<Twin> TwinBook::twin(const sim::JobConfig& config) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(twins_.begin(), twins_.end(), [&config](const auto& twin) {
    return twin->trains_like(config);
  });
  if (known != twins_.end()) {
    twins_.splice(twins_.begin(), twins_, known);
  } else {
    twins_.push_front(std::make_shared<Twin>(config));
    if (twins_.size() > kTwinsKept) twins_.pop_back();
  }
  return twins_.front();
}

}  // namespace reprise::driver
