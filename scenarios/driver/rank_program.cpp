#include "scenarios/driver/rank_program.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/hash.hpp"
#include "core/engine/load.hpp"
#include "core/engine/save.hpp"
#include "properties/content_digest.hpp"
#include "scenarios/driver/job_config.hpp"
#include "scenarios/driver/rank_judge.hpp"
#include "sim/job/common_state.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {
namespace {

/// What the checkpoint holds, for the judges; nothing if it can't be read, which the load tells by
/// itself.
Inventory stored_keys(Store& store) {
  Inventory keys;
  try {
    const Checkpoint checkpoint = Checkpoint::open(store, kCheckpointRoot);
    for (const auto& tensor : checkpoint.catalog().tensors) keys.push_back(tensor.key);
    for (const auto& object : checkpoint.catalog().objects) keys.push_back(object.key);
  } catch (const Error&) {
    return {};
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

class RankProgram {
 public:
  RankProgram(const Scenario& scenario, std::size_t number, const sim::Policies& policies,
              const Ports& ports, TwinBook& twins, const Interference& interference,
              RankRecord& record)
      : scenario_(scenario),
        number_(number),
        policies_(policies),
        ports_(ports),
        interference_(interference),
        record_(record),
        job_(number > 0 ? unloaded_config_of(scenario, number) : config_of(scenario, number),
             ports.fabric, policies.job),
        judge_(scenario, number, ports.fabric.rank(), twins, record) {}

  void run() {
    if (number_ > 0) load();
    record_.first_step = job_.iteration().value;
    for (const auto& action : scenario_.incarnations[number_].actions) {
      std::visit([this](const auto& one) { act(one); }, action);
    }
    record_.last_step = job_.iteration().value;
    record_.content_digest = digest();
  }

 private:
  void act(const TrainAction& train) {
    for (std::int64_t i = 0; i < train.steps; ++i) step();
    judge_.trained(job_);
  }
  void act(const SaveAction& /*save*/) { save(); }
  void act(const LoadAction& /*load*/) { load(); }

  /// A load that is refused leaves the job as it was, where the scenario says that it will be.
  void load() {
    try {
      load_newest();
    } catch (const Error&) {
      const bool last = number_ + 1 == scenario_.incarnations.size();
      if (scenario_.expect.refusal && last) judge_.refused(job_);
      throw;
    }
  }

  void load_newest() {
    auto common = read_common(ports_.store, job_.world(), kCheckpointRoot);
    if (common && interference_.common) interference_.common(*common);
    sim::LoadRequest request = job_.load_request(common ? &*common : nullptr);
    LoadOptions options;
    options.path = kCheckpointRoot;
    options.strictness = scenario_.strictness;
    options.excused = request.excused;
    options.policy = policies_.load;
    const Inventory requested = keys_of(request.wanted);
    const LoadReport report = reprise::load(ports_, job_.world(), request.wanted, options);
    if (interference_.common) interference_.common(request.wanted.common);
    if (interference_.state) interference_.state(ports_.fabric.rank(), request.wanted);
    job_.take(request.wanted);
    note(report);
    const bool first = ports_.fabric.rank() == GlobalRank{0};
    judge_.loaded(
        job_, {report, request.wanted, requested, first ? stored_keys(ports_.store) : Inventory{}});
  }

  void note(const LoadReport& report) {
    reports::RankResult& result = record_.result;
    result.loaded_step = report.location.step ? report.location.step->value : -1;
    result.excused = report.excused;
    result.missing = report.returned.missing;
    result.unexpected = report.returned.unexpected;
    record_.peak_bytes.load = std::max(record_.peak_bytes.load, report.peak_staging);
  }

  void step() {
    const sim::StepRecord own = job_.step();
    const bool finite = std::isfinite(own.lr) && std::isfinite(own.loss_scale);
    record_.result.metrics_finite = record_.result.metrics_finite && finite;
    judge_.stepped(own);
  }

  void save() {
    const StateDict saved = job_.state();
    judge_.saving(job_, saved);
    SaveOptions options;
    options.target = CommitTarget::iteration(kCheckpointRoot, job_.iteration());
    options.image.staging_bytes_max = kBlockingStaging;  // it is waited for
    options.policy = policies_.save;
    const SaveReport report =
        Save::begin(ports_, job_.world_group(), saved, std::move(options)).finish();
    record_.peak_bytes.stage = std::max(record_.peak_bytes.stage, report.peak_staging);
    judge_.saved();
  }

  std::string digest() {
    const StateDict state = job_.model_space();
    std::uint64_t mine = content_digest(state);
    if (ports_.fabric.rank() == GlobalRank{0}) {
      mine += value_digest(sim::layout_free(state.common));
    }
    const auto sums = job_.world().all_reduce(Reduce::kSum, halves_of(mine));
    return hex(digest_of({sums[0], sums[1]}));
  }

  const Scenario& scenario_;
  std::size_t number_;
  const sim::Policies& policies_;
  const Ports& ports_;
  const Interference& interference_;
  RankRecord& record_;
  sim::TrainingJob job_;
  RankJudge judge_;
};

}  // namespace

RankRecord run_rank(const Scenario& scenario, std::size_t number, const sim::Policies& policies,
                    const Ports& ports, TwinBook& twins, const Interference& interference) {
  RankRecord record;
  record.result.rank = ports.fabric.rank().value;
  try {
    RankProgram(scenario, number, policies, ports, twins, interference, record).run();
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
