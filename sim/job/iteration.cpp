#include "sim/job/iteration.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "reprise/error.hpp"
#include "sim/job/rerun_checkpoint.hpp"

namespace reprise::sim {
namespace {

constexpr double kLossUnit = 1048576;  // 2^20

}  // namespace

std::int64_t Iteration::own_loss(const TrainingProgress& at) const {
  std::int64_t own = 0;
  for (const auto& module : job_.modules) {
    for (const auto& family : module.families) {
      for (const auto& parameter : family.parameters) own += local_loss(parameter, at);
    }
  }
  return own;
}

void Iteration::validate(std::string_view what, int call, double right) {
  const double value =
      job_.config.rerun.result
          ? job_.config.rerun.result({job_.machine.iteration(), call, job_.machine.run()}, right)
          : right;
  const double tolerance = job_.config.rerun.options.tolerance;
  const auto check = [&](std::string_view rule, bool rejected) {
    const std::string message = std::string(rule) + " in " + std::string(what);
    job_.machine.validate({value, rejected, message, job_.policy.rerun.fatal(rule), tolerance});
  };
  check(kNaNRule, std::isnan(value));
  check(kInfinityRule, std::isinf(value));
  check(kSpikeRule, job_.machine.unexpectedly_large(what, value));
}

void Iteration::validate_results(std::int64_t own, std::int64_t loss, const TrainingProgress& at) {
  if (!job_.config.rerun.knows) return;  // a job without a rerun machine does not validate results
  validate("the loss", 0, static_cast<double>(own) / kLossUnit);
  GradientStatistics all;
  for (const auto& module : job_.modules) {
    if (module.config.frozen) continue;
    for (const auto& family : module.families) {
      if (family.settings.loss_scale.overflows()) continue;  // the loss scaler handles an overflow
      all += family.optimizer->statistics(family.parameters, {at, family.settings, loss});
    }
  }
  validate("the gradients", 1, all.norm());
}

RunEnd Iteration::run_once(TrainingProgress& at, std::int64_t& loss) {
  at.consumed_samples = job_.batches.next(at.global_batch_size).first;
  const std::int64_t own = own_loss(at);
  loss = job_.world->all_reduce(Reduce::kSum, std::span(&own, 1)).front();
  for (auto& module : job_.modules) module.streams.advance();
  validate_results(own, loss, at);
  return job_.machine.end_run(votes_of_all(*job_.world, job_.machine.votes()));
}

void Iteration::rewind(bool again) {
  const auto put_back = [this](RandomStream HostRng::*stream) {
    return [this, stream] {
      for (auto& module : job_.modules) module.streams.put_back(module.streams_before, stream);
    };
  };
  const Rewinding rewinding{.again = again,
                            .host = put_back(&HostRng::host),
                            .device = put_back(&HostRng::device),
                            .tracker = put_back(&HostRng::tracker),
                            .data = [this] { job_.batches.rewind(); }};
  for (const auto& step : job_.policy.rerun.rewind(rewinding)) step.run();
}

std::vector<ModuleStep> Iteration::own_steps(const TrainingProgress& at, std::int64_t loss) const {
  std::vector<ModuleStep> steps(job_.all_modules.size());
  for (const auto& module : job_.modules) {
    ModuleStep& step = steps[index_of(module)];
    step.group = module.group.get();
    if (module.config.frozen) continue;
    for (const auto& family : module.families) {
      step.overflow = step.overflow || family.settings.loss_scale.overflows();
      step.loss_scale = family.settings.loss_scale.scale;
    }
    if (step.overflow) continue;
    for (const auto& family : module.families) {
      const auto own = family.optimizer->statistics(family.parameters, {at, family.settings, loss});
      step.squares += own.counted;
      step.zeros += own.zeros;
    }
  }
  return steps;
}

std::size_t Iteration::index_of(const Module& module) const {
  const auto* found = module_named(job_.all_modules, module.config.name);
  return static_cast<std::size_t>(found - job_.all_modules.data());
}

/// Updates this rank's shares of all modules that are not frozen.
void Iteration::update_own(const TrainingProgress& at, std::int64_t loss,
                           const StepAgreement& agreed) {
  if (job_.config.training.before_update) job_.config.training.before_update();
  const double norm = agreed.gradient_norm();
  const bool clips = job_.config.training.clip_grad > 0 && norm > job_.config.training.clip_grad;
  for (auto& module : job_.modules) {
    if (module.config.frozen) continue;
    for (auto& family : module.families) {
      family.optimizer->step(
          family.parameters,
          {at, family.settings, loss, clips ? job_.config.training.clip_grad / norm : 1.0});
      family.optimizer->gather_weights(family.parameters, *family.group);
    }
  }
}

StepRecord Iteration::record_of(const TrainingProgress& at, std::int64_t loss,
                                const StepAgreement& agreed) const {
  StepRecord record{.loss = loss,
                    .lr = at.schedule.lr(),
                    .overflow = agreed.overflow,
                    .gradient_norm = agreed.gradient_norm(),
                    .zeros = agreed.zeros()};
  std::map<std::string, double> scales;  // by name: module order may differ between lives
  for (std::size_t m = 0; m < job_.all_modules.size(); ++m) {
    scales[job_.all_modules[m].name] = agreed.modules[m].loss_scale;
  }
  for (const auto& [name, scale] : scales) record.scales.push_back(scale);
  record.loss_scale = record.scales.front();
  return record;
}

StepRecord Iteration::update(const TrainingProgress& at, std::int64_t loss) {
  const auto own = own_steps(at, loss);
  const StepAgreement agreed = job_.policy.step.agree(*job_.world, own);
  StepRecord record = record_of(at, loss, agreed);
  if (!agreed.overflow) update_own(at, loss, agreed);
  const bool stepped = job_.policy.step.success(*job_.world, !agreed.overflow);
  job_.applied.push_back({{at.consumed_samples, at.global_batch_size}, false});
  job_.batches.advance();
  job_.progress.after_step(stepped);
  for (auto& module : job_.modules) {
    if (module.config.frozen) continue;
    for (auto& family : module.families) {
      family.settings.after_step(own[index_of(module)].overflow, stepped);
      family.settings.apply(job_.progress.schedule);
    }
  }
  record.step = Step{job_.progress.iteration};
  return record;
}

StepRecord Iteration::skip_iteration() {
  job_.machine.drop();
  job_.applied.push_back({job_.batches.next(job_.progress.global_batch_size), true});
  job_.batches.advance();
  StepRecord record{.lr = job_.progress.schedule.lr(), .skipped = true};
  if (job_.all_modules.size() == 1) {  // otherwise no rank knows all scales without communication
    record.loss_scale = job_.modules.front().families.front().settings.loss_scale.scale;
  }
  job_.progress.skip();
  record.step = Step{job_.progress.iteration};
  return record;
}

void Iteration::report_statistics(std::vector<std::string>& notes) {
  DeterminismStatistics all;
  for (const auto& bytes : job_.world->all_gather(job_.machine.statistics().encode())) {
    all.join(DeterminismStatistics::decode(bytes));
  }
  job_.machine.statistics().clear();
  if (job_.world->rank() != GroupRank{0}) return;
  const std::string what =
      "determinism of results up to iteration " + std::to_string(job_.machine.iteration()) + ": ";
  for (const auto& line : all.lines()) notes.push_back(what + line);
}

StepOutcome Iteration::run() {
  StepOutcome outcome;
  const std::int64_t number = job_.progress.iteration + 1;
  const auto& skip = job_.config.rerun.options.skip;
  if (std::find(skip.begin(), skip.end(), number) != skip.end()) {
    outcome.record = skip_iteration();
    outcome.notes = job_.machine.take_notes();
    return outcome;
  }
  job_.machine.begin(number);
  for (auto& module : job_.modules) module.streams_before = module.streams;
  TrainingProgress at = job_.progress;
  std::int64_t loss = 0;
  RunEnd end;
  do {
    end = run_once(at, loss);
    if (end.rewind) rewind(end.again);
  } while (end.again);
  outcome.exit = job_.machine.conclude();
  outcome.notes = job_.machine.take_notes();
  if (outcome.exit) {
    if (outcome.exit->save && !emits_rerun(job_)) {
      outcome.notes.push_back("checkpoints of format " +
                              std::string(name_of(job_.config.rerun.options.format)) +
                              " hold no rerun state: what was found out so far is lost, and a "
                              "restart runs the iteration as if nothing had been wrong");
    }
    return outcome;
  }
  if (job_.machine.reports_now()) report_statistics(outcome.notes);
  outcome.record = update(at, loss);
  return outcome;
}

}  // namespace reprise::sim
