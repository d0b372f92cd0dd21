#include "driver/lanes/rank_main.hpp"

#include <algorithm>
#include <cmath>

#include "core/api/calls.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/traced_ports.hpp"
#include "core/save/phases.hpp"
#include "core/save/save.hpp"
#include "driver/judges/rank_judge.hpp"
#include "driver/judges/rejected_results.hpp"
#include "driver/judges/rng_judge.hpp"
#include "driver/lanes/life_faults.hpp"
#include "driver/lanes/saves_in_flight.hpp"
#include "driver/record/job_config.hpp"
#include "driver/record/protocol_trace.hpp"
#include "properties/content_digest.hpp"
#include "properties/protocol.hpp"
#include "sim/faults/memory_meter.hpp"
#include "sim/job/job.hpp"
#include "sim/job/modules/megatron_common.hpp"
#include "sim/mutants/seam_watch.hpp"

namespace reprise::driver {
namespace {

/// A job that must exit by itself gets at most this many iterations. Jobs that do exit need fewer.
constexpr int kTriesToExit = 8;

/// Returns the keys of the checkpoint for the judges, as its ranks know them. Returns none if the
/// checkpoint can't be read; the load reports that error.
Inventory stored_keys(const RankPart& part, const std::string& directory) {
  Inventory keys;
  try {
    const Checkpoint checkpoint = part.parsed.open(part.ports.store, directory);
    for (const auto& tensor : checkpoint.catalog().tensors) keys.emplace_back(name_of(tensor));
    for (const auto& object : checkpoint.catalog().objects) keys.emplace_back(name_of(object));
  } catch (const Error&) {
    return {};
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

/// Returns the total size of all stored tensors and objects in bytes; 0 if the checkpoint can't be
/// read.
std::uint64_t stored_bytes(const RankPart& part, const std::string& directory) {
  std::uint64_t bytes = 0;
  try {
    const Checkpoint checkpoint = part.parsed.open(part.ports.store, directory);
    for (const auto& tensor : checkpoint.catalog().tensors) {
      for (const auto& chunk : tensor.chunks) bytes += chunk.range.size;
    }
    for (const auto& object : checkpoint.catalog().objects) bytes += object.range.size;
  } catch (const Error&) {
    return 0;
  }
  return bytes;
}

bool is_release(const Location& location) {
  return !location.step && location.directory.ends_with(kReleaseDirectory);
}

/// True if the rank has no part of any tensor with more than one element.
bool holds_nothing(const StateDict& state) {
  return std::all_of(state.tensors.begin(), state.tensors.end(), [](const TensorLeaf& leaf) {
    return volume(leaf.shape) <= 1 || leaf.pieces.empty();
  });
}

Bytes joined(const std::vector<std::string>& lines) {
  const std::string text = lines.empty() ? "" : join(lines, "\n") + "\n";
  const ByteSpan bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::string> split(const std::vector<Bytes>& texts) {
  std::vector<std::string> lines;
  for (const auto& text : texts) {
    std::string line;
    for (const std::byte letter : text) {
      if (letter != std::byte{'\n'}) {
        line += static_cast<char>(letter);
        continue;
      }
      lines.push_back(line);
      line.clear();
    }
  }
  return lines;
}

/// The ports that a rank's job uses. They measure the rank's memory. If faults are planned, they
/// also cause the faults.
class RankPorts {
 public:
  RankPorts(const RankPart& part, RankRecord& record, Findings& broken)
      : faulty_(part.ports, part.faults, part.powers),
        meter_(faulty_.ports()),
        watch_(meter_.ports().trace,
               [&began = record.read_began](const TraceEvent& event) {
                 if (event.phase == phase::kRead) began = true;
               }),
        protocol_(Protocol::kLoad, "load", watch_, broken),
        ports_(traced(meter_.ports(), protocol_)) {}

  const Ports& ports() const { return ports_; }
  const Ports& unmetered() const { return faulty_.ports(); }
  sim::MemoryMeter& meter() { return meter_; }
  ProtocolTrace& load() { return protocol_; }

 private:
  sim::FaultyPorts faulty_;
  sim::MemoryMeter meter_;
  TappedTrace watch_;
  ProtocolTrace protocol_;
  Ports ports_;
};

class RankMain {
 public:
  RankMain(const RankPart& part, RankRecord& record)
      : part_(part),
        scenario_(part.scenario),
        number_(part.life),
        plan_(scenario_.lives[number_]),
        faults_(faults_of(plan_, part.past)),
        rank_ports_(part, record, broken_),
        ports_(rank_ports_.ports()),
        record_(record),
        device_(device_of(scenario_, number_, part.ports.fabric.rank())),
        job_(own_config(), ports_.fabric, part.policies.job),
        judge_(part, record),
        in_flight_(rank_ports_.unmetered(), {part.log, part.recorder}, broken_),
        saves_(static_cast<std::size_t>(scenario_.checkpoint.in_flight)) {
    record_.result.owns = true;
  }

  void run() {
    try {
      live();
    } catch (...) {
      keep_states();
      throw;
    }
    keep_states();
  }

 private:
  void live() {
    std::size_t next = 0;
    if (number_ == 0) follow_rerun("start");
    while (next < plan_.actions.size() && is_fault(plan_.actions[next])) do_action(next++);
    if (number_ > 0) load();
    record_.first_step = job_.iteration().value;
    for (; next < plan_.actions.size() && !left_; ++next) do_action(next);
    begin_phase("end");
    part_.policies.shutdown(saves_);
    record_.content_digest = digest();
  }

  /// Notes what the rank does from now on. Findings until now belong to what it did before.
  void begin_phase(std::string_view phase) {
    date_findings();
    record_.phase = phase;
  }

  /// Gives new findings the present phase and step.
  void date_findings() {
    for (; dated_ < record_.findings.size(); ++dated_) {
      record_.findings[dated_].phase = record_.phase;
      record_.findings[dated_].step = record_.last_step;
    }
  }

  /// Makes the move of the rerun machine's protocol from its last state to its present one.
  void follow_rerun(const std::string& event) {
    const std::string state(sim::name_of(job_.rerun().state()));
    if (auto said = rerun_.take(event == "save" ? event : event + " " + state)) {
      broken_.push_back({.code = judged::kProtocol, .text = *said, .phase = record_.phase});
      rank_ports_.ports().trace.event({.phase = sim::kBrokenProtocol, .detail = *said});
    }
  }

  /// Keeps the states of what has not ended, and a finding for each broken protocol.
  void keep_states() {
    for (const auto& state : in_flight_.states()) record_.unended.push_back("save " + state);
    const std::string load = rank_ports_.load().state();
    if (load != "new" && !rank_ports_.load().is_complete())
      record_.unended.push_back("load " + load);
    date_findings();
    record_.findings.append(broken_);
  }

  static bool is_fault(const Action& action) { return std::holds_alternative<FaultAction>(action); }

  sim::JobConfig own_config() {
    sim::JobConfig config =
        number_ > 0 ? unloaded_config_of(scenario_, number_) : config_of(scenario_, number_);
    config.hardware.device = device_;
    config.hardware.processor = &part_.processor;
    config.training.before_update = [this] { part_.policies.before_update(saves_); };
    if (has_bad_results(scenario_)) {
      config.rerun.result = [this](const sim::ResultCall& call, double right) {
        return part_.faults.result_of({.rank = part_.ports.fabric.rank(),
                                       .device = device_,
                                       .iteration = call.iteration,
                                       .call = call.call,
                                       .run = call.run},
                                      right);
      };
    }
    config.rerun.options.skip.clear();
    if (!logs_results()) return config;
    config.rerun.options.log = rejected_results(part_.ports.store, kCheckpointRoot);
    if (plan_.skips) {
      config.rerun.options.skip = sim::iterations_to_skip(config.rerun.options.log);
    }
    return config;
  }

  bool logs_results() const {
    return has_bad_results(scenario_) || plan_.rerun != sim::RerunMode::kDisabled;
  }

  void do_action(std::size_t index) {
    std::visit([&](const auto& one) { act(one, faults_.of_action[index]); }, plan_.actions[index]);
    date_findings();
    keep_record();
  }

  void keep_record() const {
    if (part_.keep_record) part_.keep_record();
  }

  void act(const TrainAction& train, LifeFaults::Range /*none*/) {
    for (std::int64_t i = 0; i < train.steps && !left_; ++i) {
      advance();
      const bool due =
          train.save_interval > 0 && !left_ && job_.iteration().value % train.save_interval == 0;
      if (due) save({});
    }
    if (left_) {
      judge_.contradict("the job ends with exit code " + std::to_string(record_.exit_code) +
                        ", but should have continued to train");
    }
    log_results();
    begin_phase("train");
    judge_.trained(job_);
  }
  void act(const ExitAction& exits, LifeFaults::Range /*none*/) {
    for (int i = 0; i < kTriesToExit && !left_; ++i) advance();
    log_results();
    if (!left_ || record_.exit_code != exits.code) {
      judge_.contradict("the job should have ended with exit code " + std::to_string(exits.code) +
                        (left_ ? " but ended with " + std::to_string(record_.exit_code)
                               : " but continues to train"));
    }
    if (exits.saves && *exits.saves != saved_at_exit_) {
      judge_.contradict(saved_at_exit_ ? "the job saved before it ended, but should not have"
                                       : "the job should have saved before it ended, but did not");
    }
  }
  void act(const SaveAction& plan, LifeFaults::Range /*none*/) { save(plan); }
  void act(const FinalizeAction& /*finalize*/, LifeFaults::Range /*none*/) {
    begin_phase("save");
    saves_.finalize();
  }
  void act(const ReallocateAction& /*reallocate*/, LifeFaults::Range /*none*/) {
    part_.policies.before_update(saves_);
    job_.reallocate();
  }
  void act(const LoadAction& /*load*/, LifeFaults::Range /*none*/) {
    begin_phase("save");
    saves_.finalize();
    load();
  }
  void act(const BadResultAction& /*bad*/, LifeFaults::Range range) {
    for (std::size_t i = range.begin; i < range.begin + range.count; ++i) {
      part_.faults.arm(i, ports_.fabric.rank(), job_.iteration().value + 1, device_);
    }
  }
  void act(const FaultAction& /*fault*/, LifeFaults::Range range) {
    part_.faults.arm(range.begin, ports_.fabric.rank());
  }
  // These are done between lives, not here.
  void act(const DamageAction& /*damage*/, LifeFaults::Range /*none*/) {}
  void act(const ReleaseAction& /*release*/, LifeFaults::Range /*none*/) {}
  void act(const OwnMetadataAction& /*own*/, LifeFaults::Range /*none*/) {}
  void act(const ReshardAction& /*reshard*/, LifeFaults::Range /*none*/) {}
  void act(const DiffAction& /*diff*/, LifeFaults::Range /*none*/) {}

  void expect_code(const Failing& fails, const Error& error) {
    if (fails.how == Failing::How::kNever) throw Error(error);
    if (error.code() == Code::kInternal) throw error;
    if (fails.how != Failing::How::kBy || error.code() == fails.code) return;
    judge_.contradict("the save should have failed with " + name_of(fails) + " but failed with " +
                      error.what());
  }

  // --- loading -----------------------------------------------------------------------------------

  /// Loads the newest checkpoint. If the scenario expects a refusal, checks that the refused load
  /// left the job unchanged.
  void load() {
    begin_phase("load");
    record_.read_began = false;
    rank_ports_.load().begin();
    try {
      load_newest();
    } catch (const Error& error) {
      if (refusal_is_planned()) judge_refusal();
      throw;
    }
  }

  void judge_refusal() {
    if (!record_.read_began) {
      judge_.refused(job_);
    } else if (!arrived_) {
      judge_.refused_while_read(request_.wanted);
    }
  }

  bool refusal_is_planned() const {
    const bool last = number_ + 1 == scenario_.lives.size();
    const auto& outcomes = scenario_.expect.outcomes;
    return plan_.fails || (scenario_.expect.refusal && last) ||
           std::find(outcomes.begin(), outcomes.end(), Outcome::kRefused) != outcomes.end();
  }

  void load_newest() {
    sim::LoadRequest& request = request_;
    Inventory requested;
    const Ask ask = [&](const Candidate& offered) {
      Value seen = offered.common != nullptr ? *offered.common : Value();
      if (offered.common != nullptr && interferes() && part_.interference->common) {
        part_.interference->common(seen);
      }
      request = job_.load_request({.common = offered.common != nullptr ? &seen : nullptr,
                                   .catalog = &offered.catalog,
                                   .release = is_release(offered.location)},
                                  groups_with(plan_.lie));
      if (lies(plan_.lie)) apply_lie(plan_.lie->about, request.wanted);
      requested = keys_of(request.wanted);
      rank_ports_.meter().set_own(job_.memory(), request.wanted);
      if (refusal_is_planned()) judge_.asks(request.wanted);
      return Wanted{&request.wanted, request.excused};
    };
    arrived_ = false;
    Job loading = engine_job(ports_);
    const LoadResult report = reprise::load(loading, load_options(), ask);
    arrived_ = true;
    rank_ports_.load().returned();
    if (interferes() && part_.interference->common) {
      part_.interference->common(request.wanted.common);
    }
    if (interferes() && part_.interference->state) {
      part_.interference->state(ports_.fabric.rank(), request.wanted);
    }
    judge_.filled(request.wanted);
    take(request.wanted);
    follow_rerun("load");
    tell_step();
    note(report, request);
    judge_.loaded(job_, {report, request.wanted, requested,
                         is_first() ? stored_keys(part_, report.directory) : Inventory{},
                         rank_ports_.meter().bytes_read(), bytes_allowed(report)});
  }

  bool lies(const std::optional<Lie>& lie) const {
    return lie && ports_.fabric.rank() == GlobalRank{lie->rank};
  }
  /// Returns the groups that the job gives to its saves and loads. If this rank lies about them,
  /// they are wrong.
  sim::JobGroups groups_with(const std::optional<Lie>& lie) const {
    sim::JobGroups groups = job_.given_groups();
    if (lies(lie)) apply_lie(lie->about, groups);
    return groups;
  }

  /// Returns how many bytes all ranks together may read. Returns 0 if there is no limit, and on
  /// every rank except the first.
  std::uint64_t bytes_allowed(const LoadResult& report) {
    if (!scenario_.checkpoint.reads_once || !is_first()) return 0;
    return stored_bytes(part_, report.directory);
  }

  LoadOptions load_options() const {
    const CheckpointPlan& plan = scenario_.checkpoint;
    LoadOptions options;
    options.directory = kCheckpointRoot;
    options.strictness = plan.strictness;
    if (plan.falls_back) options.fallback = Fallback::kNewestWhole;
    if (plan.checks) options.checksums = LoadChecksums::kVerified;
    if (plan.reads_once) options.reads = Reads::kOncePerJob;
    return options;
  }

  void take(StateDict& loaded) {
    ports_.trace.event({.phase = "take", .detail = {}, .moment = Moment::kBegin});
    job_.take(loaded);
    ports_.trace.event({.phase = "take", .detail = {}, .moment = Moment::kEnd});
  }

  void note(const LoadResult& report, const sim::LoadRequest& request) {
    reports::RankResult& result = record_.result;
    result.loaded_step = report.step.value_or(-1);
    result.excused = report.excused;
    result.not_requested = report.not_requested;
    result.not_stored = report.not_stored;
    say(request.notes);
    say(report.log);
    say(report.fell_back_from);
    judge_.held("a load", rank_ports_.meter().peaks().load, report.bound_staging);
    record_.peak_bytes.load = std::max(record_.peak_bytes.load, rank_ports_.meter().peaks().load);
    record_.bound_bytes.load = std::max(record_.bound_bytes.load, report.bound_staging);
    held_nothing("a load", rank_ports_.meter().peaks().load, report.bound_empty);
  }

  /// True if the job has no part of any tensor. Uses the job's own description, because a save may
  /// leave tensors out. The first call must come between iterations; later calls return the same
  /// answer.
  bool holds_nothing() {
    if (!holds_nothing_) holds_nothing_ = driver::holds_nothing(job_.live_state());
    return *holds_nothing_;
  }
  /// Only for a rank that has no part of any tensor: checks that `bytes`, the memory that `what`
  /// used, does not exceed `bound`, the limit for such ranks. Records both numbers.
  void held_nothing(const std::string& what, std::uint64_t bytes, std::uint64_t bound) {
    if (!holds_nothing()) return;
    judge_.held(what + " of a rank that holds nothing", bytes, bound);
    record_.peak_bytes.empty = std::max(record_.peak_bytes.empty, bytes);
    record_.bound_bytes.empty = std::max(record_.bound_bytes.empty, bound);
  }

  // --- training ----------------------------------------------------------------------------------

  void advance() {
    begin_phase("train");
    const sim::StepOutcome outcome = job_.advance();
    follow_rerun(outcome.exit ? "exit " + std::to_string(outcome.exit->code) : "iteration");
    tell_step();
    say(outcome.notes);
    const auto diagnosis = job_.rerun().diagnosis();
    if (diagnosis != sim::RerunDiagnosis::kNone) record_.diagnosis = diagnosis;
    if (outcome.exit) {
      leave(*outcome.exit);
      return;
    }
    const sim::StepRecord& own = *outcome.record;
    const bool finite = std::isfinite(own.lr) && std::isfinite(own.loss_scale);
    record_.result.metrics_finite = record_.result.metrics_finite && finite;
    if (own.skipped) record_.skipped.push_back(own.step.value);
    judge_.stepped(own, job_.applied_samples().back());
    part_.policies.iterated(saves_);
  }

  void leave(const sim::RerunExit& exit) {
    left_ = true;
    record_.exit_code = exit.code;
    if (exit.diagnosis != sim::RerunDiagnosis::kNone) record_.diagnosis = exit.diagnosis;
    say({exit.why});
    log_results();  // must come first, because the save may fail
    if (!exit.save) return;
    save({});
    saved_at_exit_ = true;
  }

  /// Gathers the log lines of all ranks on the first rank.
  void log_results() {
    if (!logs_results()) return;
    const auto& own = job_.rerun().log();
    const std::vector<std::string> news(own.begin() + static_cast<std::ptrdiff_t>(logged_),
                                        own.end());
    logged_ = own.size();
    const auto lines = split(job_.world().all_gather(joined(news)));
    if (is_first() && !lines.empty()) {
      add_rejected_results(part_.ports.store, kCheckpointRoot, lines);
    }
  }

  // --- saving ------------------------------------------------------------------------------------

  void save(SaveAction plan) {
    plan.optimizer = plan.optimizer && scenario_.checkpoint.optimizer;
    plan.random = plan.random && scenario_.checkpoint.random;
    begin_phase("save");
    StateDict saved;
    try {
      saved = job_.state(groups_with(plan.lie), parts_of(plan));
    } catch (const Error& error) {
      say({error.what()});
      return expect_code(plan.fails, error);
    }
    follow_rerun("save");
    const std::size_t number = judge_.saving(job_, saved, plan);
    static_cast<void>(holds_nothing());
    keep_record();
    const bool async = plan.async.value_or(scenario_.checkpoint.async);
    SaveOptions options = save_options(plan, async);
    if (lies(plan.lie)) {
      apply_lie(plan.lie->about, saved);
      if (plan.lie->about == LieAbout::kKeep) ++options.keep.emplace(options.keep.value_or(1));
    }
    const Ports& ports = in_flight_.begin(number, job_.iteration(), job_.memory(), saved);
    const auto after_failure = call_after_failure(saved, options.structure);
    saves_.begin(
        options, [&] { return begin(ports, saved, options); },
        [this, number, plan, after_failure](const EndedSave& end) {
          if (end.error) after_failure();
          ended(number, plan, end);
        });
    record_.bound_bytes.stage = std::max(record_.bound_bytes.stage, saves_.bound_staging());
    if (!async) saves_.finalize();
  }

  /// Returns the function to call after a failed save. If a mutant provides one, it receives the
  /// slot of the plan and a copy of `state`. If not, the returned function does nothing.
  std::function<void()> call_after_failure(const StateDict& state, const std::string& structure) {
    const auto call = part_.policies.save_failed;
    if (call == nullptr || structure.empty()) return [] {};
    PlanSlot& slot = memory_->plans[structure];
    return [this, call, &slot, kept = std::make_shared<const StateDict>(state)] {
      call(slot, *job_.world_group(), *kept);
    };
  }

  SaveInFlight begin(const Ports& ports, const StateDict& state, const SaveOptions& options) {
    if (part_.policies.before_save != nullptr) {
      part_.policies.before_save(*job_.world_group(), state);
    }
    Job saving = engine_job(ports);
    return begin_save(saving, state, options);
  }

  /// Returns the engine's job for one call. All of them are one job: they remember the same. Only
  /// with a mutant do they enter the seams.
  Job engine_job(const Ports& ports) {
    JobSeams seams;
    if (sim::has_replaced_seams(part_.policies)) seams = {&save_seams_, &part_.policies.load};
    return job_over(ports, job_.world_group(), memory_, seams);
  }

  SaveOptions save_options(const SaveAction& plan, bool async) {
    const CheckpointPlan& checkpoint = scenario_.checkpoint;
    SaveOptions options{.directory = kCheckpointRoot, .step = job_.iteration().value};
    if (checkpoint.keep > 0) options.keep = static_cast<std::int32_t>(checkpoint.keep);
    if (!plan.checksums) options.checksums = Checksums::kNone;
    options.returns = BeginReturns::kWhenQueued;  // the job waits before it changes its state
    if (!async) {                                 // the job waits for this save
      options.staging_bytes = std::max(kBlockingStaging, 4 * ports_.device.batch_bytes());
    }
    if (checkpoint.staging_bytes > 0) {
      options.staging_bytes = static_cast<std::uint64_t>(checkpoint.staging_bytes);
    }
    if (checkpoint.batch_bytes > 0) {
      options.batch_bytes = static_cast<std::uint64_t>(checkpoint.batch_bytes);
    }
    options.structure =
        checkpoint.keeps_plan ? part_.policies.cache_of(name_of(plan.kind)) : std::string();
    return options;
  }

  void ended(std::size_t number, const SaveAction& plan, const EndedSave& end) {
    begin_phase("save");
    const Held held{in_flight_.peaks(number), in_flight_.peaks_together()};
    if (!end.error) in_flight_.returned(number);
    in_flight_.end(number);
    if (end.error) {
      judge_.save_failed(number, *end.error);
      say({end.error->what()});
      return expect_code(plan.fails, *end.error);
    }
    note(end.result, held);
    judge_.saved(number, end.result,
                 is_first() ? stored_keys(part_, end.result.directory) : Inventory{});
    keep_record();
    if (plan.fails.how == Failing::How::kNever || plan.fails.how == Failing::How::kMaybe) return;
    judge_.contradict("the save should have failed with " + name_of(plan.fails) + " but succeeded");
  }

  /// Memory peaks of one save, and of all saves in flight at that time.
  struct Held {
    sim::MemoryPeaks alone;
    sim::MemoryPeaks together;
  };

  void note(const SaveResult& result, const Held& held) {
    say(result.log);
    judge_.held("a save", held.alone.stage, result.bound_staging);
    held_nothing("a save", held.alone.stage, result.bound_empty);
    record_.peak_bytes.snapshot = std::max(record_.peak_bytes.snapshot, held.together.snapshot);
    record_.peak_bytes.stage = std::max(record_.peak_bytes.stage, held.together.stage);
    record_.replans = 0;
    for (const auto& [kind, slot] : memory_->plans) record_.replans += slot.replans;
  }

  // --- results -----------------------------------------------------------------------------------

  void say(const std::vector<std::string>& lines) {
    record_.log.insert(record_.log.end(), lines.begin(), lines.end());
  }
  void tell_step() {
    record_.last_step = job_.iteration().value;
    if (part_.log != nullptr) part_.log->at(job_.iteration());
  }
  bool is_first() { return job_.world().rank() == GroupRank{0}; }
  bool interferes() const { return part_.interference != nullptr; }

  std::string digest() {
    const StateDict state = job_.model_space();
    std::uint64_t mine = content_digest(state, [this](const TensorLeaf& leaf, std::uint64_t key) {
      return sim::leaf_digest(part_.processor, leaf, key);
    });
    if (is_first()) mine += value_digest(sim::layout_free(state.common));
    for (const auto& leaf : state.objects) {  // most of them are settings of modules
      if (leaf.replica != 0 || is_stream(leaf.key)) continue;
      mine += value_digest(Tuple{{leaf.key, leaf.value}});
    }
    const auto sums = job_.world().all_reduce(Reduce::kSum, halves_of(mine));
    return hex(digest_of({sums[0], sums[1]}));
  }

  const RankPart& part_;
  const Scenario& scenario_;
  std::size_t number_;
  const LifePlan& plan_;
  LifeFaults faults_;
  Findings broken_;  ///< on broken protocols
  ProtocolWalk rerun_{Protocol::kRerun};
  RankPorts rank_ports_;
  const Ports& ports_;
  RankRecord& record_;
  std::string device_;
  std::shared_ptr<JobMemory> memory_ =
      std::make_shared<JobMemory>(JobMemory{.parsed = &part_.parsed});
  sim::TrainingJob job_;
  RankJudge judge_;
  SavesInFlight in_flight_;
  const SaveSeams save_seams_ =
      sim::save_seams(part_.policies, [this] { return job_.iteration(); });
  SaveQueue saves_;
  sim::LoadRequest request_;           ///< request of the last load
  bool arrived_ = false;               ///< true once the request has been filled
  std::optional<bool> holds_nothing_;  ///< true if this rank has no part of any tensor
  bool left_ = false;
  bool saved_at_exit_ = false;
  std::size_t dated_ = 0;   ///< number of findings that have a phase
  std::size_t logged_ = 0;  ///< number of the rerun machine's log lines collected so far
};

}  // namespace

std::optional<Error> rank_main(const RankPart& part, RankRecord& record) {
  record.result.rank = part.ports.fabric.rank().value;
  const LifePlan& plan = part.scenario.lives[part.life];
  if (!plan.has_member(part.ports.fabric.rank().value)) {
    record.ending = Ending::kReturned;
    return std::nullopt;
  }
  record.result.owns = false;  // stays false if the job can't even be created
  try {
    RankMain(part, record).run();
    record.ending = Ending::kReturned;
    return std::nullopt;
  } catch (const Error& error) {
    record.ending = error.code() == Code::kInternal ? Ending::kDefect : Ending::kFailed;
    record.code = error.code();
    record.message = error.what();
    return error;
  } catch (const std::exception& mistake) {
    record.ending = Ending::kDefect;
    record.code = Code::kInternal;
    record.message = mistake.what();
    return Error(Code::kInternal, mistake.what());
  }
}

}  // namespace reprise::driver
