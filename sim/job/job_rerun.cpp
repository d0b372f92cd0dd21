// Runs an iteration of the job with the re-runs that its results need, and saves and loads the
// state of the rerun machine.

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "reprise/error.hpp"
#include "sim/job/job.hpp"

namespace reprise::sim {
namespace {

constexpr const char* kObjectKey = "rerun_state_machine_state";
constexpr const char* kCommonKey = "rerun_state_machine";
constexpr double kLossUnit = 1048576;  // 2^20

StoredRerun stored_rerun(const RerunSnapshot& snapshot, std::vector<ModuleConfig> modules) {
  return {snapshot.mode, snapshot.state, snapshot.iteration, std::move(modules)};
}

/// Excuses the keys that the writer marked as optional.
void leave_unknown(LoadRequest& request, const std::vector<std::string>& optional) {
  for (const auto& key : optional) {
    request.excused.push_back(key);
    request.notes.push_back(key +
                            " is skipped: this job does not know what it is, and the checkpoint "
                            "says that it can do without");
  }
}

}  // namespace

void TrainingJob::make_machine() {
  const RerunOptions& options = config_.rerun.options;
  machine_ = RerunMachine({.mode = config_.rerun.mode,
                           .place = world_->rank(),
                           .rank = rank_,
                           .device = config_.hardware.device,
                           .job_id = options.job_id,
                           .injector = options.injector,
                           .large = options.large},
                          policy_.rerun);
}

// --- an iteration -------------------------------------------------------------------------------

std::int64_t TrainingJob::own_loss(const Progress& at) const {
  std::int64_t own = 0;
  for (const auto& module : modules_) {
    for (const auto& family : module.families) {
      for (const auto& parameter : family.parameters) own += local_loss(parameter, at);
    }
  }
  return own;
}

void TrainingJob::validate(std::string_view what, int call, double right) {
  const double value =
      config_.rerun.result
          ? config_.rerun.result({machine_.iteration(), call, machine_.run()}, right)
          : right;
  const double tolerance = config_.rerun.options.tolerance;
  const auto check = [&](std::string_view rule, bool rejected) {
    const std::string message = std::string(rule) + " in " + std::string(what);
    machine_.validate({value, rejected, message, policy_.rerun.fatal(rule), tolerance});
  };
  check(kNaNRule, std::isnan(value));
  check(kInfinityRule, std::isinf(value));
  check(kSpikeRule, machine_.unexpectedly_large(what, value));
}

void TrainingJob::validate_results(std::int64_t own, std::int64_t loss, const Progress& at) {
  if (!config_.rerun.knows) return;  // older jobs did not validate results
  validate("the loss", 0, static_cast<double>(own) / kLossUnit);
  GradientStatistics all;
  for (const auto& module : modules_) {
    if (module.config.frozen) continue;
    for (const auto& family : module.families) {
      if (family.settings.loss_scale.overflows()) continue;  // the scaler handles it
      all += family.optimizer->statistics(family.parameters, {at, family.settings, loss});
    }
  }
  validate("the gradients", 1, all.norm());
}

RunEnd TrainingJob::run_once(Progress& at, std::int64_t& loss) {
  at.consumed_samples = data_.next(at.global_batch_size).first;
  const std::int64_t own = own_loss(at);
  loss = world_->all_reduce(Reduce::kSum, std::span(&own, 1)).front();
  for (auto& module : modules_) module.streams.advance();
  validate_results(own, loss, at);
  return machine_.end_run(votes_of_all(*world_, machine_.votes()));
}

void TrainingJob::rewind(bool again) {
  const auto put_back = [this](RandomStream HostRng::*stream) {
    return [this, stream] {
      for (auto& module : modules_) module.streams.put_back(module.streams_before, stream);
    };
  };
  const Rewinding rewinding{.again = again,
                            .host = put_back(&HostRng::host),
                            .device = put_back(&HostRng::device),
                            .tracker = put_back(&HostRng::tracker),
                            .data = [this] { data_.rewind(); }};
  for (const auto& step : policy_.rerun.rewind(rewinding)) step.run();
}

std::vector<ModuleStep> TrainingJob::own_steps(const Progress& at, std::int64_t loss) const {
  std::vector<ModuleStep> steps(all_modules_.size());
  for (const auto& module : modules_) {
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

std::size_t TrainingJob::index_of(const Module& module) const {
  const auto* found = module_named(all_modules_, module.config.name);
  return static_cast<std::size_t>(found - all_modules_.data());
}

/// Updates this rank's shares of the modules that are trained.
void TrainingJob::update_own(const Progress& at, std::int64_t loss, const StepAgreement& agreed) {
  const double norm = agreed.gradient_norm();
  const bool clips = config_.training.clip_grad > 0 && norm > config_.training.clip_grad;
  for (auto& module : modules_) {
    if (module.config.frozen) continue;
    for (auto& family : module.families) {
      family.optimizer->step(family.parameters, {at, family.settings, loss,
                                                 clips ? config_.training.clip_grad / norm : 1.0});
      family.optimizer->gather_weights(family.parameters, *family.group);
    }
  }
}

StepRecord TrainingJob::record_of(const Progress& at, std::int64_t loss,
                                  const StepAgreement& agreed) const {
  StepRecord record{.loss = loss,
                    .lr = at.schedule.lr(),
                    .overflow = agreed.overflow,
                    .gradient_norm = agreed.gradient_norm(),
                    .zeros = agreed.zeros()};
  std::map<std::string, double> scales;  // the order of modules may change between lives
  for (std::size_t m = 0; m < all_modules_.size(); ++m) {
    scales[all_modules_[m].name] = agreed.modules[m].loss_scale;
  }
  for (const auto& [name, scale] : scales) record.scales.push_back(scale);
  record.loss_scale = record.scales.front();
  return record;
}

StepRecord TrainingJob::update(const Progress& at, std::int64_t loss) {
  const auto own = own_steps(at, loss);
  const StepAgreement agreed = policy_.step.agree(*world_, own);
  StepRecord record = record_of(at, loss, agreed);
  if (!agreed.overflow) update_own(at, loss, agreed);
  const bool stepped = policy_.step.success(*world_, !agreed.overflow);
  applied_.push_back({{at.consumed_samples, at.global_batch_size}, false});
  data_.advance();
  progress_.after_step(stepped);
  for (auto& module : modules_) {
    if (module.config.frozen) continue;
    for (auto& family : module.families) {
      family.settings.after_step(own[index_of(module)].overflow, stepped);
      family.settings.apply(progress_.schedule);
    }
  }
  record.step = iteration();
  return record;
}

StepRecord TrainingJob::skip_iteration() {
  machine_.drop();
  applied_.push_back({data_.next(progress_.global_batch_size), true});
  data_.advance();
  StepRecord record{.lr = progress_.schedule.lr(), .skipped = true};
  if (all_modules_.size() == 1) {  // otherwise no rank knows all scales without asking
    record.loss_scale = modules_.front().families.front().settings.loss_scale.scale;
  }
  progress_.skip();
  record.step = iteration();
  return record;
}

void TrainingJob::report_statistics(std::vector<std::string>& notes) {
  DeterminismStatistics all;
  for (const auto& bytes : world_->all_gather(machine_.statistics().encode())) {
    all.join(DeterminismStatistics::decode(bytes));
  }
  machine_.statistics().clear();
  if (world_->rank() != GroupRank{0}) return;
  const std::string what =
      "determinism of results up to iteration " + std::to_string(machine_.iteration()) + ": ";
  for (const auto& line : all.lines()) notes.push_back(what + line);
}

StepOutcome TrainingJob::advance() {
  StepOutcome outcome;
  const std::int64_t number = progress_.iteration + 1;
  const auto& skip = config_.rerun.options.skip;
  if (std::find(skip.begin(), skip.end(), number) != skip.end()) {
    outcome.record = skip_iteration();
    outcome.notes = machine_.take_notes();
    return outcome;
  }
  machine_.begin(number);
  for (auto& module : modules_) module.streams_before = module.streams;
  Progress at = progress_;
  std::int64_t loss = 0;
  RunEnd end;
  do {
    end = run_once(at, loss);
    if (end.rewind) rewind(end.again);
  } while (end.again);
  outcome.exit = machine_.conclude();
  outcome.notes = machine_.take_notes();
  if (outcome.exit) {
    if (outcome.exit->save && !emits_rerun()) {
      outcome.notes.push_back("checkpoints of format " +
                              std::string(name_of(config_.rerun.options.format)) +
                              " hold no rerun state: what was found out so far is lost, and a "
                              "restart runs the iteration as if nothing had been wrong");
    }
    return outcome;
  }
  if (machine_.reports_now()) report_statistics(outcome.notes);
  outcome.record = update(at, loss);
  return outcome;
}

StepRecord TrainingJob::step() {
  const StepOutcome outcome = advance();
  CHECK(!outcome.exit.has_value(), outcome.exit->code, outcome.exit->why);
  return *outcome.record;
}

// --- checkpoints --------------------------------------------------------------------------------

bool TrainingJob::emits_rerun() const {
  // Independent of the policy that describes a state: a save may have the object or not.
  return policy_.rerun.emitted(machine_.mode(), machine_.state(), config_.rerun.options.format);
}

std::vector<std::string> TrainingJob::optional_keys() const {
  if (!emits_rerun()) return {};
  return {kObjectKey};
}

void TrainingJob::add_rerun(StateDict& state, const JobPolicy& policy) const {
  if (!emits_rerun()) return;
  const RerunSnapshot snapshot = machine_.snapshot();
  auto* common = state.common.as<Dict>();
  CHECK(common != nullptr);
  common->emplace_back(kCommonKey, encode(snapshot));
  ObjectLeaf leaf = rerun_leaf(policy.rerun);
  if (policy.rerun.batches(snapshot.state)) {
    data_.require_wrapped("those of iteration " + std::to_string(snapshot.iteration) +
                          " are to be saved");
  }
  leaf.value = machine_.encode_object({data_.position()});
  state.objects.push_back(std::move(leaf));
}

ObjectLeaf TrainingJob::rerun_leaf(const RerunPolicy& policy) const {
  const ObjectPlace place =
      policy.placed(all_modules_.front().layout, world_->rank(), world_->group().size());
  return {.key = kObjectKey,
          .grid = place.grid,
          .coordinate = place.coordinate,
          .replica = place.replica};
}

void TrainingJob::announce_rerun(LoadRequest& request, const StoredRerun& stored) const {
  const auto say = [&request](const std::string& note) {
    if (!note.empty()) request.notes.push_back(note);
  };
  const Restoring restoring = policy_.rerun.restored(stored, {machine_.mode(), all_modules_});
  say(restoring.note);
  if (!restoring.restore) return;
  const auto before = restarts_in(config_.rerun.options.log, stored.iteration);
  say(policy_.rerun.guard(stored.iteration, before));
}

void TrainingJob::force_rerun(LoadRequest& request, const Value* common) const {
  if (policy_.rerun.forced(machine_.mode(), config_.rerun.options.format)) {
    request.wanted.objects.push_back(rerun_leaf(policy_.rerun));
  }
  const auto snapshot = common == nullptr ? std::nullopt : rerun_of(*common);
  if (!snapshot || !policy_.rerun.concerned(taking_.finetune)) return;
  announce_rerun(request, stored_rerun(*snapshot, decode_common(*common).modules));
}

void TrainingJob::request_rerun(LoadRequest& request, const Value* common) const {
  StoredRerun stored{.modules = all_modules_};
  if (config_.rerun.knows && config_.rerun.options.asks == RerunTemplate::kForced) {
    force_rerun(request, common);
    return;
  }
  if (common == nullptr) {
    if (!emits_rerun()) return;
  } else if (!config_.rerun.knows) {
    leave_unknown(request, decode_common(*common).identity.optional);
    return;
  } else {
    const auto snapshot = rerun_of(*common);
    if (!snapshot) return;
    stored = stored_rerun(*snapshot, decode_common(*common).modules);
    if (!policy_.rerun.concerned(taking_.finetune)) {
      request.excused.emplace_back(kObjectKey);
      return;
    }
    announce_rerun(request, stored);
  }
  const auto ranks = job_members(stored.modules).size();
  if (ranks != members().size()) {
    request.excused.emplace_back(kObjectKey);
    request.notes.push_back("the rerun state is of " + std::to_string(ranks) +
                            " ranks and this job has " + std::to_string(members().size()) +
                            ": it is left behind");
  } else if (policy_.rerun.asked(stored, {machine_.mode(), all_modules_})) {
    request.wanted.objects.push_back(rerun_leaf(policy_.rerun));
  }
}

void TrainingJob::take_rerun(const StateDict& loaded, const CommonState& stored) {
  LoadedData data{.consumed_samples = progress_.consumed_samples};
  for (const auto& object : loaded.objects) {
    if (object.key == kObjectKey) data.object = &object.value;
  }
  const bool known = config_.rerun.knows && policy_.rerun.concerned(taking_.finetune);
  const auto snapshot = known ? rerun_of(loaded.common) : std::nullopt;
  if (snapshot) {
    const auto machine = stored_rerun(*snapshot, stored.modules);
    data.restored = policy_.rerun.restored(machine, {machine_.mode(), all_modules_}).restore &&
                    data.object != nullptr;
  }
  if (data.restored) machine_.restore(*snapshot, *data.object);
  data_ = DataIterator(policy_.rerun.data(data), config_.rerun.options.iterators);
}

}  // namespace reprise::sim
