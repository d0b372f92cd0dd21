#include "driver/record/reference_run.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace reprise::driver {

namespace {

/// Returns the config of the same training on one rank.
sim::JobConfig on_one_rank(const sim::JobConfig& config) {
  sim::JobConfig alone;
  alone.makeup.model = config.makeup.model;
  alone.training.seed = config.training.seed;
  alone.checkpoint.optimizer_sharding = config.checkpoint.optimizer_sharding;
  alone.training.schedule = config.training.schedule;
  alone.training.groups_differ_in = config.training.groups_differ_in;
  alone.checkpoint.shard_dim = config.checkpoint.shard_dim;
  alone.training.clip_grad = config.training.clip_grad;
  alone.load = config.load;
  alone.rerun.options.skip = config.rerun.options.skip;
  for (auto module : config.makeup.modules) {
    module.layout = {};
    module.ranks = {};
    alone.makeup.modules.push_back(std::move(module));
  }
  return alone;
}

}  // namespace

ReferenceRun::ReferenceRun(const sim::JobConfig& config, ReferenceStart start)
    : config_(on_one_rank(config)), start_(std::move(start)) {}

sim::StepRecord ReferenceRun::record(Step step) {
  const std::lock_guard lock(mutex_);
  if (!first_) restart();
  CHECK(step > *first_, step, *first_);
  const auto at = static_cast<std::size_t>(step.value - first_->value - 1);
  if (at >= records_.size()) train_to(step);
  return records_[at];
}

std::shared_ptr<const GlobalState> ReferenceRun::state(Step step) {
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
  judged::Findings findings;
  auto state = std::make_shared<const GlobalState>(assemble({&rank, 1}, findings));
  CHECK(findings.empty(), findings.front());
  states_.emplace_front(step, state);
  if (states_.size() > kStatesKept) states_.pop_back();
  return state;
}

bool ReferenceRun::trains_like(const sim::JobConfig& config, const ReferenceStart& start) const {
  const sim::JobConfig other = on_one_rank(config);
  return other.makeup.model == config_.makeup.model &&
         other.training.seed == config_.training.seed &&
         other.checkpoint.optimizer_sharding == config_.checkpoint.optimizer_sharding &&
         other.training.schedule == config_.training.schedule &&
         other.training.groups_differ_in == config_.training.groups_differ_in &&
         other.makeup.modules == config_.makeup.modules &&
         other.training.clip_grad == config_.training.clip_grad &&
         other.rerun.options.skip == config_.rerun.options.skip && start == start_ &&
         (start.before == nullptr || other.load == config_.load);
}

std::int64_t ReferenceRun::steps_trained() {
  const std::lock_guard lock(mutex_);
  return trained_;
}

void ReferenceRun::train_to(Step step) {
  if (!job_ || step < job_->iteration()) restart();
  while (job_->iteration() < step) {
    const sim::StepRecord record = job_->step();
    ++trained_;
    const auto at = record.step.value - first_->value;
    if (static_cast<std::int64_t>(records_.size()) < at) records_.push_back(record);
  }
}

std::unique_ptr<sim::TrainingJob> ReferenceRun::job_at(Step step) {
  const std::lock_guard lock(mutex_);
  restart();
  train_to(step);
  return std::move(job_);
}

void ReferenceRun::restart() {
  if (start_.before) {
    const auto before = start_.before->job_at(start_.at);
    job_ = std::make_unique<sim::TrainingJob>(config_, fabric_, std::move(*before));
  } else {
    job_ = std::make_unique<sim::TrainingJob>(config_, fabric_);
  }
  first_ = job_->iteration();
}

std::shared_ptr<ReferenceRun> ReferenceRuns::get(const sim::JobConfig& config,
                                                 const ReferenceStart& start) {
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(references_.begin(), references_.end(),
                   [&](const auto& reference) { return reference->trains_like(config, start); });
  if (known != references_.end()) {
    references_.splice(references_.begin(), references_, known);
  } else {
    references_.push_front(std::make_shared<ReferenceRun>(config, start));
    if (references_.size() > kReferencesKept) references_.pop_back();
  }
  return references_.front();
}

}  // namespace reprise::driver
