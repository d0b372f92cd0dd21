#include "driver/programs/program_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "driver/lanes/scratch_directory.hpp"
#include "driver/programs/element_mismatch.hpp"
#include "driver/programs/program_failure.hpp"
#include "driver/programs/second_try.hpp"
#include "driver/record/record.hpp"
#include "driver/witness/same_steps.hpp"
#include "driver/witness/sample_judge.hpp"
#include "driver/witness/step_table.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;
using reports::LifeOutcome;
using reports::ScenarioResult;
using reports::Verdict;

/// Returns the name of a control run. It contains everything that the run depends on, so equal
/// names mean equal runs.
std::string control_name(const std::string& kind, const ProgramPlan& plan, const ProgramLife& life,
                         std::int64_t from, std::int64_t steps) {
  nlohmann::json name = {{"kind", kind},           {"trainer", plan.trainer.folder},
                         {"seed", plan.seed},      {"layout", life.layout},
                         {"from", from},           {"steps", steps},
                         {"options", life.options}};
  return name.dump();
}

std::int64_t trained_steps(const ProgramLife& life) {
  std::int64_t steps = 0;
  for (const auto& step : life.steps) steps += step.steps;
  return steps;
}

/// Returns the life with only its training steps, and without its kill.
ProgramLife only_training(const ProgramLife& life) {
  ProgramLife kept = life;
  kept.kill.reset();
  kept.rerun.reset();
  kept.exit = 0;
  std::erase_if(kept.steps,
                [](const ProgramStep& step) { return step.does != ProgramDoes::kTrain; });
  return kept;
}

std::string folder_of_again(const std::string& work, std::size_t life) {
  return work + "/again" + std::to_string(life);
}

/// Runs the lives of one scenario, and the control runs that they are compared with.
class ProgramRun {
 public:
  ProgramRun(const ProgramPlan& plan, const ProgramOptions& options, std::string work)
      : plan_(plan), options_(options), work_(std::move(work)) {}

  const std::vector<LifeEvidence>& lives() const { return lives_; }
  const ControlRuns& controls() const { return controls_; }

  /// Runs the lives in order. Stops after the first life that does not end as planned.
  void run_lives(const std::string& values = {}, std::size_t most = SIZE_MAX) {
    std::vector<StoredCheckpoint> stored;
    for (std::size_t i = 0; i < plan_.lives.size() && i < most; ++i) {
      keep_for_again(i);
      lives_.push_back(plan_.lives[i].command
                           ? run_command_life(plan_.lives[i], work_, options_.place)
                           : run_program_life(request(plan_.lives[i], i, work_, values)));
      note_silence(lives_.back());
      lives_.back().before = stored;
      add_blanks(lives_.back().ranks, blanks_);
      stored = read_root(checkpoints_in(work_), blanks_);
      lives_.back().after = stored;
      if (!ended_as_planned(lives_.back())) return;
    }
  }

  void run_controls() {
    if (lives_.size() < 2) return;
    std::int64_t steps = 0;
    for (const auto& life : lives_) {
      for (const auto step : steps_of(life.ranks)) steps = std::max(steps, step);
    }
    if (steps > 0) {
      ProgramLife life = only_training(plan_.lives.front());
      life.steps = {{ProgramDoes::kTrain, steps}};
      uninterrupted_ = run_uninterrupted("uninterrupted", life);
      note_silence(*uninterrupted_);
      controls_.uninterrupted = uninterrupted_.get();
    }
    for (std::size_t i = 1; i < lives_.size(); ++i) {
      if (!loads_again(i)) continue;
      again_.push_back(std::make_unique<LifeEvidence>(run_program_life(
          request(only_training(plan_.lives[i]), i, folder_of_again(work_, i), ""))));
      controls_.again[i] = again_.back().get();
    }
  }

  /// Makes a second uninterrupted run, and settles findings that compare with the first one. If the
  /// two runs differ, the program is not deterministic, and no save or load is to blame.
  void settle_with_second(Findings& findings) {
    const auto compared = [](const Finding& finding) {
      return !finding.stream.empty() && finding.fails();
    };
    if (!uninterrupted_ || std::none_of(findings.begin(), findings.end(), compared)) return;
    const auto second = run_uninterrupted("second", uninterrupted_->plan);
    if (!ended_as_planned(*uninterrupted_) || !ended_as_planned(*second)) return;
    settle_other_course(other_course(*uninterrupted_, *second), findings);
  }

  /// Adds a finding that names the control run that failed, if one did.
  void judge_controls(Findings& findings) const {
    std::vector<std::pair<std::string, const LifeEvidence*>> runs;
    if (uninterrupted_) runs.emplace_back("the uninterrupted run", uninterrupted_.get());
    for (const auto& again : again_) {
      runs.emplace_back("the second run from a checkpoint", again.get());
    }
    for (const auto& [called, run] : runs) {
      if (!ended_as_planned(*run)) return judge_control(*run, called, findings);
    }
  }

  /// True if each process that was ended at its deadline still reported something.
  bool progressing() const {
    std::vector<const LifeEvidence*> runs = {uninterrupted_.get(), cold_.get()};
    for (const auto& life : lives_) runs.push_back(&life);
    for (const auto& again : again_) runs.push_back(again.get());
    return std::all_of(runs.begin(), runs.end(), [](const LifeEvidence* run) {
      return run == nullptr || std::all_of(run->ends.begin(), run->ends.end(), [](const auto& end) {
               return !end.timed_out || end.progressing;
             });
    });
  }

  /// Repeats the last life that loaded a checkpoint, but the new run only pretends to load. Adds a
  /// finding if the judges find nothing wrong with the new run.
  void judge_cold(Findings& findings) {
    std::size_t last = lives_.size();
    while (last > 0 && !loaded_by(lives_[last - 1])) --last;
    if (last-- <= 1) return;
    const std::int64_t step = *loaded_by(lives_[last]);
    const ProgramLife life = only_training(plan_.lives[last]);
    cold_ =
        options_.controls->run(control_name("cold", plan_, life, step, trained_steps(life)), [&] {
          const ScratchDirectory scratch;
          LifeRequest wanted = request(life, last, scratch.path(), "");
          wanted.loads = Loads::kPretends;
          wanted.cold_step = step;
          return run_program_life(wanted);
        });
    const auto end = lives_.begin() + static_cast<std::ptrdiff_t>(last) + 1;
    judge_cold_life(plan_, {lives_.begin(), end}, *cold_, controls_, findings);
  }

 private:
  /// The deadlines of later runs follow the pace of those that began from nothing.
  void note_silence(const LifeEvidence& run) {
    const bool from_nothing = &run == uninterrupted_.get() || lives_.size() == 1;
    if (!from_nothing || !ended_as_planned(run)) return;
    first_silence_ = std::max(first_silence_, run.longest_silence);
  }

  bool loads_again(std::size_t life) const {
    return plan_.expect.goes_on == GoesOn::kLikeControl && after_change(plan_, life) &&
           !plan_.lives[life].command;
  }

  void keep_for_again(std::size_t life) const {
    if (life == 0 || !loads_again(life)) return;
    fs::create_directories(folder_of_again(work_, life));
    fs::copy(checkpoints_in(work_), checkpoints_in(folder_of_again(work_, life)),
             fs::copy_options::recursive);
  }

  LifeRequest request(const ProgramLife& life, std::size_t number, const std::string& work,
                      const std::string& values) const {
    return {.trainer = plan_.trainer,
            .life = life,
            .number = number,
            .seed = plan_.seed,
            .loads = number > 0 ? Loads::kNewest : Loads::kNothing,
            .work = work,
            .values = values,
            .place = options_.place,
            .silence_s_max = silence_limit(plan_.trainer.seconds, first_silence_)};
  }

  std::shared_ptr<const LifeEvidence> run_uninterrupted(const std::string& kind,
                                                        const ProgramLife& life) {
    const std::string name = control_name(kind, plan_, life, 0, trained_steps(life));
    return options_.controls->run(name, [&] {
      const ScratchDirectory scratch;
      return run_program_life(request(life, 0, scratch.path(), ""));
    });
  }

  const ProgramPlan& plan_;
  const ProgramOptions& options_;
  std::string work_;
  std::vector<LifeEvidence> lives_;
  Blanks blanks_;
  std::shared_ptr<const LifeEvidence> uninterrupted_;
  std::vector<std::unique_ptr<LifeEvidence>> again_;
  std::shared_ptr<const LifeEvidence> cold_;
  ControlRuns controls_;
  double first_silence_ = 0;  ///< longest silence of a run that began from nothing, in seconds
};

/// Runs the scenario a second time. In this run the ranks write out the elements of the wrong
/// tensor, so that the first wrong element can be named.
void name_difference(const ProgramPlan& plan, const ProgramOptions& options, Findings& findings,
                     ScenarioResult& result) {
  const auto at = std::find_if(findings.begin(), findings.end(),
                               [](const Finding& finding) { return finding.fails(); });
  if (at == findings.end() || !at->other_elements) return;
  const ScratchDirectory scratch;
  ProgramRun second(plan, options, scratch.path());
  second.run_lives(at->key, at->life.value_or(0) + 1);
  const auto found = first_mismatch(scratch.path(), second.lives().size(), *at);
  if (!found) {
    at->text += "; a second run did not show which element";
    return;
  }
  if (at->code == judged::kBitMismatch) at->code = found->code;
  at->text += ": first at " + found->first.key + "[";
  for (std::size_t d = 0; d < found->first.index.size(); ++d) {
    at->text += (d > 0 ? ", " : "") + std::to_string(found->first.index[d]);
  }
  at->text += "], which is " + found->first.loaded + " and was " + found->first.saved +
              (found->first.comes_from.empty() ? "" : "; it is " + found->first.comes_from);
  result.first_difference = found->first;
  for (auto& rank : result.ranks) {
    if (rank.rank != found->first.rank) continue;
    rank.bit_mismatches = found->elements;
    rank.max_delta = found->max_delta;
  }
}

/// Returns the state of the rank that the judges compared: its state after its last load or, if it
/// loaded nothing, its state at its last save.
const WitnessState* compared_state(const RankWitness& rank) {
  const WitnessState* found = nullptr;
  for (const auto& state : rank.states) {
    const bool better = found == nullptr || found->when != StateMoment::kLoaded;
    if (state.when == StateMoment::kLoaded || (state.when == StateMoment::kSave && better))
      found = &state;
  }
  return found;
}

reports::RankResult rank_result(const RankWitness& rank, std::size_t number) {
  reports::RankResult result;
  result.rank = static_cast<std::int32_t>(number);
  const WitnessState* state = compared_state(rank);
  if (state == nullptr) return result;
  if (state->when == StateMoment::kLoaded) result.loaded_step = state->step;
  for (const auto& tensor : state->tensors) {
    for (const auto& box : tensor.boxes) {
      result.elements += static_cast<std::uint64_t>(box.box.elements());
    }
    if (!tensor.boxes.empty()) ++result.compared;
  }
  result.owns = result.elements > 0;
  if (result.owns) result.compared += state->objects.size();
  for (const auto& step : rank.steps) {
    for (const auto& [name, value] : step.metrics) {
      result.metrics_finite = result.metrics_finite && std::isfinite(value);
    }
  }
  return result;
}

/// Lists what was not judged: excused keys, boxes that belong to no rank, samples and rates that no
/// rank reported, and hardware that was missing.
void add_excused(const ProgramPlan& plan, const LifeEvidence& life,
                 std::vector<std::string>& excused) {
  excused = plan.expect.unwitnessed;
  Blanks blanks;
  add_blanks(life.ranks, blanks);
  for (const auto& [key, boxes] : blanks) {
    std::int64_t elements = 0;
    for (const auto& box : boxes) elements += box.elements();
    excused.push_back(key + ": " + with_commas(elements) + " blank elements");
  }
  const bool rates = std::any_of(life.ranks.begin(), life.ranks.end(), [](const auto& rank) {
    return std::any_of(rank.steps.begin(), rank.steps.end(),
                       [](const WitnessStep& step) { return step.metrics.contains("lr"); });
  });
  if (!rates) excused.emplace_back("learning rate: none was reported");
  const bool samples = std::any_of(life.ranks.begin(), life.ranks.end(), [](const auto& rank) {
    return std::any_of(rank.steps.begin(), rank.steps.end(),
                       [](const WitnessStep& step) { return !step.samples.empty(); });
  });
  if (!samples) excused.emplace_back("samples: none were reported");
  if (life.ranks.empty()) return;
  for (const auto& script : life.ranks.front().stand_ins) {
    excused.push_back("hardware: " + script + " stands in for it");
  }
}

/// Returns the last life in which a rank described a state; the last life if there is none.
const LifeEvidence& last_compared(const std::vector<LifeEvidence>& lives) {
  const auto found = std::find_if(lives.rbegin(), lives.rend(), [](const LifeEvidence& life) {
    return std::any_of(life.ranks.begin(), life.ranks.end(),
                       [](const RankWitness& rank) { return compared_state(rank) != nullptr; });
  });
  return found == lives.rend() ? lives.back() : *found;
}

void add_life(const ProgramPlan& plan, std::size_t number, const LifeEvidence& life,
              ScenarioResult& result) {
  reports::Life shown{.layout = life.plan.command ? "command"
                                                  : layout_text(plan.trainer, life.plan.layout)};
  const auto steps = steps_of(life.ranks);
  const auto loaded = loaded_by(life);
  shown.outcome = life.plan.kill                     ? LifeOutcome::kCutShort
                  : !ended_as_planned(life)          ? LifeOutcome::kFailed
                  : number > 0 && !life.plan.command ? LifeOutcome::kContinued
                                                     : LifeOutcome::kRan;
  if (shown.outcome == LifeOutcome::kFailed) shown.code = name_of(judged::kVerdictDisagreement);
  shown.exit_code = life.plan.kill ? 1 : static_cast<int>(life.plan.exit);
  shown.first_step = loaded.value_or(0);
  shown.last_step = steps.empty() ? shown.first_step : steps.back();
  result.layouts.push_back(shown.layout);
  result.lives.push_back(std::move(shown));
}

void add_trajectory(const ProgramPlan& plan, std::size_t number, const LifeEvidence& life,
                    const ControlRuns& controls, ScenarioResult& result) {
  const LifeEvidence* reference = reference_of(plan, number, controls);
  const StepTable table(life.ranks);
  std::optional<StepTable> compared;
  std::optional<StepTable> uninterrupted;
  if (reference != nullptr) compared.emplace(reference->ranks);
  if (controls.uninterrupted != nullptr) uninterrupted.emplace(controls.uninterrupted->ranks);
  for (const auto step : steps_of(life.ranks)) {
    const auto of = [&](const char* name) { return table.metric(step, name); };
    reports::TrainingPoint point{.step = step,
                                 .loss = of("loss").value_or(0),
                                 .lr = of("lr").value_or(0),
                                 .loss_scale = of("scale").value_or(0),
                                 .uninterrupted_loss = {},
                                 .uninterrupted_lr = {}};
    if (compared) {
      point.uninterrupted_loss = compared->metric(step, "loss");
      point.uninterrupted_loss_scale = compared->metric(step, "scale");
    }
    if (uninterrupted) point.uninterrupted_lr = uninterrupted->metric(step, "lr");
    result.trajectory.push_back(point);
  }
}

/// Returns a digest of the last state that all ranks described. The digest does not depend on the
/// sharding.
std::string content_of(const LifeEvidence& life) {
  Findings ignored;
  for (const StateMoment when : {StateMoment::kEnd, StateMoment::kLoaded, StateMoment::kSave}) {
    const auto states = states_of(life.ranks, when, 0, ignored);
    if (states.empty()) continue;
    Hasher content;
    for (const auto& [key, tensor] : states.back().tensors) {
      content.text(key).number(tensor.digest);
    }
    return hex(content.digest());
  }
  return "";
}

void add_fault(const LifeEvidence& life, ScenarioResult& result) {
  if (life.plan.rerun) {
    const bool came = fault_came(life);
    result.faults.push_back({"rerun " + std::string(name_of(life.plan.rerun->kind)),
                             static_cast<std::int32_t>(life.plan.rerun->rank.value_or(-1)), true,
                             came, came, true});
  }
  if (life.plan.kill) {
    const bool fired = kill_fired(life);
    result.faults.push_back({"kill in " + life.plan.kill->phase,
                             static_cast<std::int32_t>(life.plan.kill->rank), true, fired, fired,
                             true});
  }
}

/// Makes a finding the verdict.
void take(const std::optional<Finding>& found, ScenarioResult& result) {
  result.verdict = verdict_of(found);
  if (!found) return;
  result.code = name_of(found->code);
  result.reason = found->text;
}

}  // namespace

ScenarioResult describe_lives(const ProgramPlan& plan, const std::vector<LifeEvidence>& lives,
                              const ControlRuns& controls) {
  ScenarioResult result;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    add_life(plan, i, lives[i], result);
    add_trajectory(plan, i, lives[i], controls, result);
    add_fault(lives[i], result);
    result.world = std::max(result.world, static_cast<std::int32_t>(lives[i].ends.size()));
  }
  if (lives.empty()) return result;
  // A pass requires a comparison in the last life, but an expected failure may occur in an earlier
  // life.
  const LifeEvidence& last = plan.expect.fails ? last_compared(lives) : lives.back();
  for (std::size_t rank = 0; rank < last.ranks.size(); ++rank) {
    result.ranks.push_back(rank_result(last.ranks[rank], rank));
    if (rank == 0) add_excused(plan, last, result.ranks.back().excused);
  }
  if (!result.ranks.empty() && controls.uninterrupted != nullptr) {
    Findings ignored;
    auto& excused = result.ranks.front().excused;
    for (auto& text : judge_samples(lives, *controls.uninterrupted, ignored)) {
      excused.push_back(std::move(text));
    }
  }
  result.content_digest = content_of(last);
  return result;
}

void conclude(const ProgramPlan& plan, const Findings& findings, ScenarioResult& result) {
  const Finding* failure = first_failure(findings);
  const auto& expect = plan.expect;
  std::uint64_t elements = 0;
  for (const auto& rank : result.ranks) elements += rank.elements;
  if (failure != nullptr) {
    const bool expected =
        expect.fails == failure->code && failure->text.find(expect.says) != std::string::npos;
    if (expected) {
      result.verdict = Verdict::kPass;
      result.diagnosis = std::string(name_of(failure->code)) + ", as expected: " + failure->text;
      result.first_difference.reset();
      for (auto& rank : result.ranks) rank.bit_mismatches = 0;
      for (auto& rank : result.ranks) rank.max_delta = 0;
      for (auto& point : result.trajectory) {
        point.uninterrupted_loss.reset();
        point.uninterrupted_lr.reset();
        point.uninterrupted_loss_scale.reset();
      }
      for (auto& life : result.lives) {
        if (life.outcome == LifeOutcome::kFailed) life.outcome = LifeOutcome::kRefused;
      }
      return;
    }
    result.verdict = Verdict::kFail;
    result.code = name_of(failure->code);
    result.reason = failure->text;
    result.failure = program_failure(plan, findings,
                                     static_cast<std::size_t>(failure - &findings.front()), result);
    return;
  }
  if (expect.fails) {
    std::string reason = "it should have failed with " + std::string(name_of(*expect.fails)) +
                         ", but nothing was found";
    if (!findings.empty()) reason += " but: " + findings.front().text;
    take(judged::fail(judged::kVerdictDisagreement, std::move(reason)), result);
  } else if (!findings.empty()) {
    result.verdict = Verdict::kInconclusive;
    result.code = name_of(findings.front().code);
    result.reason = findings.front().text;
    result.failure = program_failure(plan, findings, 0, result);
  } else if (elements == 0) {
    take(judged::vacuous(judged::kOracleVacuous, "nothing was compared"), result);
  } else {
    result.verdict = Verdict::kPass;
  }
}

namespace {

/// True if the verdict rests on a process that was ended at its deadline.
bool rests_on_deadline(const Findings& findings) {
  const Finding* failure = first_failure(findings);
  if (failure != nullptr) return failure->at_deadline;
  return !findings.empty() && findings.front().at_deadline;
}

ProgramTry run_try(const Scenario& scenario, const ProgramOptions& options,
                   const std::string& work) {
  const ProgramPlan& plan = *scenario.program;
  const auto start = std::chrono::steady_clock::now();
  ProgramRun run(plan, options, work);
  run.run_lives();
  Findings findings = judge_program(plan, run.lives(), run.controls());
  if (first_failure(findings) == nullptr && run.lives().size() == plan.lives.size()) {
    run.run_controls();
    findings = judge_program(plan, run.lives(), run.controls());
    run.settle_with_second(findings);
    run.judge_controls(findings);
    if (findings.empty() && !plan.expect.fails) run.judge_cold(findings);
  }
  ProgramTry tried{.result = describe_lives(plan, run.lives(), run.controls())};
  ScenarioResult& result = tried.result;
  result.name = scenario.name;
  result.file = scenario.file;
  result.proves = scenario.proves;
  name_difference(plan, options, findings, result);
  conclude(plan, findings, result);
  tried.at_deadline = result.verdict != Verdict::kPass && rests_on_deadline(findings);
  tried.progressing = run.progressing();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  result.seconds = seconds.count();
  return tried;
}

}  // namespace

ScenarioResult run_program_scenario(const Scenario& scenario, const ProgramOptions& options) {
  const ScratchDirectory scratch;
  const std::string work =
      options.keep.empty() ? scratch.path() : (fs::path(options.keep) / scenario.name).string();
  ProgramTry first = run_try(scenario, options, work);
  if (!first.at_deadline) return std::move(first.result);
  return with_second_try(first, run_try(scenario, options, work + "/second-try").result);
}

}  // namespace reprise::driver
