#include "scenarios/driver/rank_program.hpp"

#include <cmath>
#include <memory>

#include "core/base/hash.hpp"
#include "core/engine/load.hpp"
#include "core/engine/save.hpp"
#include "properties/content_digest.hpp"
#include "properties/inventory.hpp"
#include "properties/state_judge.hpp"
#include "sim/job/common_state.hpp"
#include "sim/job/job.hpp"
#include "sim/job/solo_fabric.hpp"

namespace reprise::driver {
namespace {

/// A loading job starts from other values, so that what was not restored can't pass for restored.
constexpr std::uint64_t kFreshSeed = 1000003;
constexpr double kLossUnit = 1.0 / (1 << 20);

sim::JobConfig config_of(const Scenario& scenario, const sim::Layout& layout) {
  sim::JobConfig config;
  config.model = scenario.model;
  config.layout = layout;
  config.seed = scenario.seed;
  config.optimizer_sharding = scenario.optimizer_sharding;
  config.run = scenario.name;
  return config;
}

/// The job that was never interrupted, whole on one rank: the state after n steps is the same under
/// every layout.
class Twin {
 public:
  explicit Twin(const Scenario& scenario) : job_(config_of(scenario, {}), fabric_) {}

  sim::StepRecord step() { return job_.step(); }
  void train_to(Step step) {
    while (job_.iteration() < step) job_.step();
  }
  StateDict state() { return job_.live_state(); }

 private:
  sim::SoloFabric fabric_;
  sim::TrainingJob job_;
};

class RankProgram {
 public:
  RankProgram(const Scenario& scenario, std::size_t number, const sim::Policies& policies,
              const Ports& ports, RankRecord& record)
      : scenario_(scenario),
        plan_(scenario.incarnations[number]),
        policies_(policies),
        ports_(ports),
        record_(record),
        resumes_(number > 0),
        job_(fresh_config(), ports.fabric, policies.job) {}

  void run() {
    if (resumes_) resume();
    record_.first_step = job_.iteration().value;
    for (const auto& action : plan_.actions) {
      if (const auto* train = std::get_if<TrainAction>(&action)) {
        for (std::int64_t i = 0; i < train->steps; ++i) step();
        if (twin_) compare("after " + std::to_string(job_.iteration().value) + " steps");
      } else {
        save();
      }
    }
    record_.last_step = job_.iteration().value;
    record_.content_digest = digest();
  }

 private:
  sim::JobConfig fresh_config() const {
    sim::JobConfig config = config_of(scenario_, plan_.layout);
    if (resumes_) config.seed += kFreshSeed;
    return config;
  }

  void resume() {
    LoadOptions options;
    options.path = kCheckpointRoot;
    options.strictness = scenario_.strictness;
    const auto common = read_common(ports_.store, job_.world(), kCheckpointRoot);
    sim::LoadRequest request = job_.load_request(common ? &*common : nullptr);
    options.excused = request.excused;
    const LoadReport report = load(ports_, job_.world(), request.wanted, options);
    job_.take(request.wanted);
    record_.result.loaded_step = report.location.step ? report.location.step->value : -1;
    record_.result.excused = report.excused;
    record_.result.missing = report.returned.missing;
    record_.result.unexpected = report.returned.unexpected;
    record_.peak_bytes.load = report.peak_staging;
    twin_ = std::make_unique<Twin>(scenario_);
    twin_->train_to(job_.iteration());
    compare("right after the load");
  }

  void step() {
    const sim::StepRecord own = job_.step();
    reports::TrainingPoint point{.step = own.step.value,
                                 .loss = static_cast<double>(own.loss) * kLossUnit,
                                 .lr = own.lr,
                                 .loss_scale = own.loss_scale,
                                 .uninterrupted_loss = {},
                                 .uninterrupted_lr = {}};
    if (!std::isfinite(own.lr) || !std::isfinite(own.loss_scale)) {
      record_.result.metrics_finite = false;
    }
    if (twin_) {
      const sim::StepRecord other = twin_->step();
      point.uninterrupted_loss = static_cast<double>(other.loss) * kLossUnit;
      point.uninterrupted_lr = other.lr;
      if (!(own == other)) {
        std::ostringstream text;
        text << "the resumed job's step is " << own << ", the uninterrupted one's " << other;
        record_.rulings.push_back({"TRAJECTORY_DIVERGENCE", text.str()});
      }
    }
    record_.trajectory.push_back(point);
  }

  void save() {
    const StateDict live = job_.live_state();
    const StateDict saved = job_.state();
    add(judge_inventory(keys_of(live), keys_of(saved), keys_of(job_.load_template()), {}));
    add(judge_common_inventory(live.common, saved.common));
    SaveOptions options;
    options.target = CommitTarget::iteration(kCheckpointRoot, job_.iteration());
    options.policy = policies_.save;
    const SaveReport report =
        Save::begin(ports_, job_.world_group(), saved, std::move(options)).finish();
    record_.peak_bytes.stage = std::max(record_.peak_bytes.stage, report.peak_staging);
  }

  /// The whole state of the uninterrupted job against what this rank holds.
  void compare(const std::string& when) {
    const StateDict expected = twin_->state();
    const RankState whole{GlobalRank{0}, &expected};
    Rulings rulings;
    const GlobalState saved = assemble({&whole, 1}, rulings);
    const StateDict own = job_.live_state();
    const JudgeOptions options{.skipped_objects = {"rng_state"}, .comparable = sim::layout_free};
    const StateEvidence evidence = judge_state(saved, {ports_.fabric.rank(), &own}, options);
    add(rulings);
    add(evidence.rulings);
    reports::RankResult& result = record_.result;
    result.compared += evidence.tensors + evidence.values;
    result.elements += evidence.compared.elements;
    result.bit_mismatches += evidence.compared.bit_mismatches;
    const bool unordered = std::isnan(result.max_delta) || std::isnan(evidence.compared.max_delta);
    result.max_delta =
        unordered ? std::nan("") : std::max(result.max_delta, evidence.compared.max_delta);
    result.owns = result.owns && !own.tensors.empty();
    if (evidence.first && !record_.first_difference) {
      const auto& first = *evidence.first;
      record_.first_difference =
          reports::FirstDifference{.rank = first.rank.value,
                                   .key = first.key,
                                   .index = {first.index.begin(), first.index.end()},
                                   .saved = first.saved,
                                   .loaded = first.loaded,
                                   .comes_from = first.comes_from + " (" + when + ")"};
    }
  }

  void add(const Rulings& rulings) {
    for (const auto& ruling : rulings) {
      std::ostringstream text;
      text << ruling;
      record_.rulings.push_back({std::string(name_of(ruling.defect)), text.str()});
    }
  }

  std::string digest() {
    const StateDict state = job_.live_state();
    std::uint64_t mine = content_digest(state);
    if (ports_.fabric.rank() == GlobalRank{0}) {
      mine += value_digest(sim::layout_free(state.common));
    }
    const auto sums = job_.world().all_reduce(Reduce::kSum, halves_of(mine));
    return hex(digest_of({sums[0], sums[1]}));
  }

  const Scenario& scenario_;
  const IncarnationPlan& plan_;
  const sim::Policies& policies_;
  const Ports& ports_;
  RankRecord& record_;
  bool resumes_;
  sim::TrainingJob job_;
  std::unique_ptr<Twin> twin_;
};

}  // namespace

RankRecord run_rank(const Scenario& scenario, std::size_t number, const sim::Policies& policies,
                    const Ports& ports) {
  RankRecord record;
  record.result.rank = ports.fabric.rank().value;
  try {
    RankProgram(scenario, number, policies, ports, record).run();
    record.ending = Ending::kReturned;
  } catch (const Error& error) {
    record.ending = error.code() == Code::kInternal ? Ending::kDefect : Ending::kFailed;
    record.code = std::string(name_of(error.code()));
    record.message = error.what();
  } catch (const std::exception& mistake) {
    record.ending = Ending::kDefect;
    record.code = std::string(name_of(Code::kInternal));
    record.message = mistake.what();
  }
  return record;
}

}  // namespace reprise::driver
