#include "driver/witness/program_judge.hpp"

#include <algorithm>
#include <csignal>
#include <map>

#include "driver/witness/command_judge.hpp"
#include "driver/witness/course_judge.hpp"
#include "driver/witness/life_end_judge.hpp"
#include "driver/witness/load_judge.hpp"
#include "driver/witness/order_judge.hpp"
#include "driver/witness/same_steps.hpp"
#include "driver/witness/sample_judge.hpp"
#include "driver/witness/step_table.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr int kKilled = 128 + SIGKILL;

bool is_async(const ProgramPlan& plan, const ProgramLife& life, const ProgramStep& step) {
  if (step.async) return *step.async;
  for (const auto& option : plan.trainer.options) {
    if (option.name != "async") continue;
    const auto given = life.options.find("async");
    const std::string& value = given == life.options.end() ? option.values[0] : given->second;
    return value != "none" && value != "off";
  }
  return false;
}

/// True if the last save of the life must be complete, because it was not asynchronous or a later
/// step waited for it.
bool last_save_ended(const ProgramPlan& plan, const ProgramLife& life) {
  bool ended = true;
  for (const auto& step : life.steps) {
    if (step.does == ProgramDoes::kSave) ended = !is_async(plan, life, step);
    if (step.does == ProgramDoes::kFinalize) ended = true;
  }
  return ended;
}

/// True if the job's first step has the number 0.
bool counts_from_zero(const std::vector<LifeEvidence>& lives) {
  const auto steps = lives.empty() ? std::vector<std::int64_t>() : steps_of(lives.front().ranks);
  return !steps.empty() && steps.front() == 0;
}

/// Judges the lives in order and remembers what was saved.
class ProgramJudge : judged::Finder {
 public:
  ProgramJudge(const ProgramPlan& plan, const std::vector<LifeEvidence>& lives,
               const ControlRuns& controls, Findings& findings)
      : Finder(findings, {}), plan_(plan), lives_(lives), controls_(controls) {}

  void judge() {
    if (controls_.uninterrupted != nullptr) {
      states_of(controls_.uninterrupted->ranks, StateMoment::kEnd, 0, control_end_);
    }
    for (number_ = 0; number_ < lives_.size(); ++number_) {
      life_ = &lives_[number_];
      place_ = {.text = life_name(number_) + ": ", .life = number_};
      judge_life();
    }
    judge_control_orders();
    Findings compared;
    if (controls_.uninterrupted != nullptr) {
      judge_samples(lives_, *controls_.uninterrupted, compared);
    }
    compared.append(course_);
    settle_same_steps(compared);
    findings_.append(compared);
    doubt_after_gap();
  }

 private:
  void judge_life() {
    if (life_->plan.command) return judge_command(number_, *life_, findings_);
    judge_life_start(number_, *life_, findings_);
    const std::size_t first = saves_.size();
    judge_states();
    judge_life_end(number_, *life_, findings_);
    judge_stored(first);
    judge_unwaited(first);
    judge_end_state();
    require_told(saves_.size() - first);
    judge_order(number_, *life_, life_name(number_),
                {.loads = number_ > 0, .zero_based = counts_from_zero(lives_)}, findings_);
    if (number_ + 1 == plan_.lives.size()) judge_loaded_step();
    judge_trajectory();
  }

  /// If a witness file is missing, what seems wrong from that life on may follow from that alone.
  void doubt_after_gap() {
    const auto gap = std::find_if(lives_.begin(), lives_.end(), [](const LifeEvidence& life) {
      return std::any_of(life.unread.begin(), life.unread.end(),
                         [](const Finding& flaw) { return flaw.code == judged::kOracleVacuous; });
    });
    const auto first = static_cast<std::size_t>(gap - lives_.begin());
    for (auto& finding : findings_) {
      if (finding.life >= first) finding.severity = Severity::kInconclusive;
    }
  }

  /// Compares only with runs whose own reports are in order.
  void judge_control_orders() {
    const bool zero_based = counts_from_zero(lives_);
    if (controls_.uninterrupted != nullptr) {
      const bool loads = loaded_by(*controls_.uninterrupted).has_value();
      judge_order(0, *controls_.uninterrupted, "the uninterrupted run",
                  {.loads = loads, .zero_based = zero_based}, findings_);
      judge_control_end("the uninterrupted run", control_end_);
    }
    for (const auto& [life, again] : controls_.again) {
      const std::string called = "the second run of " + life_name(life);
      judge_order(life, *again, called, {.loads = true, .zero_based = zero_based}, findings_);
      Findings found;
      states_of(again->ranks, StateMoment::kEnd, life, found);
      judge_control_end(called, found);
    }
  }

  /// A run whose ranks do not agree on what they hold at the end is no measure for another.
  void judge_control_end(const std::string& called, const Findings& found) {
    if (found.empty()) return;
    const Finding& first = found.front();
    const std::string life = life_name(first.life.value_or(0)) + ", ";
    const bool named = first.text.starts_with(life);
    findings_.push_back(
        {.code = first.code,
         .key = first.key,
         .text = called + " can't be compared with: " + first.text.substr(named ? life.size() : 0),
         .severity = Severity::kInconclusive,
         .life = first.life,
         .step = first.step,
         .phase = "end"});
  }

  // --- saves and loads ---------------------------------------------------------------------------

  bool whole_life() const { return ended_as_planned(*life_) && !life_->plan.kill; }

  /// Goes through the states of the life in the order in which the ranks reported them.
  void judge_states() {
    auto saves = states_of(life_->ranks, StateMoment::kSave, number_, findings_);
    loads_ = states_of(life_->ranks, StateMoment::kLoaded, number_, findings_);
    const std::size_t before = saves_.size();
    std::size_t loaded = 0;
    for (const StateMoment moment : moments_of(life_->ranks)) {
      const std::size_t saved = saves_.size() - before;
      if (moment == StateMoment::kSave && saved < saves.size()) add_save(saves, saved);
      if (moment == StateMoment::kLoaded && loaded < loads_.size()) judge_load_of(loads_[loaded++]);
    }
  }

  void add_save(std::vector<WholeState>& saves, std::size_t saved) {
    const bool last = saved + 1 == saves.size();
    const bool ended = !last || (whole_life() && last_save_ended(plan_, life_->plan));
    const bool in_load = life_->plan.kill && life_->plan.kill->phase.starts_with("load");
    saves_.push_back({.state = std::move(saves[saved]),
                      .layout = life_->plan.layout,
                      .complete = ended || in_load});
  }

  void judge_load_of(const WholeState& loaded) {
    const auto at = save_loaded(saves_, loaded.step);
    const bool own = at && saves_[*at].state.life == number_;
    const auto& stored = own ? life_->after : life_->before;
    // If it was unknown whether this save had ended, it has not been compared yet. It was loaded,
    // so it must be whole and is compared now.
    const bool known = at && (lives_[saves_[*at].state.life].stored_known ||
                              checkpoint_of(stored, loaded.step) != nullptr);
    if (known && !own && !saves_[*at].compared) judge_save_in(*at, stored);
    const bool named = plan_.expect.loaded_step && number_ + 1 == plan_.lives.size();
    judge_load({.saves = saves_,
                .loaded = loaded,
                .layout = life_->plan.layout,
                .stored = stored,
                .wants_newest = !named},
               findings_);
  }

  /// Compares the saves of this life with the checkpoints that the life left.
  void judge_stored(std::size_t first) {
    for (std::size_t i = first; i < saves_.size(); ++i) {
      if (life_->stored_known && saves_[i].complete && !saved_again(i)) {
        judge_save_in(i, life_->after);
      }
    }
  }

  void judge_save_in(std::size_t save, const std::vector<StoredCheckpoint>& stored) {
    const StoredCheckpoint* checkpoint = checkpoint_of(stored, saves_[save].state.step);
    if (checkpoint == nullptr && may_be_gone(save)) return;
    saves_[save].compared = true;
    if (checkpoint == nullptr) {
      const WholeState& state = saves_[save].state;
      Finding& finding =
          find(judged::kCommitMissing,
               "the save of step " + std::to_string(state.step) +
                   " left no readable checkpoint of torch.distributed.checkpoint or torch_dist");
      finding.step = state.step;
      finding.life = state.life;
      finding.phase = "store";
      finding.with("a checkpoint of step " + std::to_string(state.step), "none");
      return;
    }
    reprise::driver::judge_save({.saves = saves_,
                                 .number = save,
                                 .stored = *checkpoint,
                                 .life = lives_[saves_[save].state.life],
                                 .unwitnessed = plan_.expect.unwitnessed},
                                findings_);
  }

  /// Checks that the ranks agree on what they hold at the end. If those of the uninterrupted run
  /// differ in the same way, no save or load is to blame.
  void judge_end_state() {
    Findings found;
    states_of(life_->ranks, StateMoment::kEnd, number_, found);
    for (auto& finding : found) {
      const bool there =
          std::any_of(control_end_.begin(), control_end_.end(), [&](const Finding& other) {
            return other.code == finding.code && other.key == finding.key;
          });
      if (there) {
        finding.severity = Severity::kInconclusive;
        finding.text += "; the uninterrupted run has the same problem";
      }
      findings_.push_back(std::move(finding));
    }
  }

  /// A life may end although its last asynchronous save has not. If that save left no whole
  /// checkpoint, nobody knows whether the program wrote it.
  void judge_unwaited(std::size_t first) {
    if (!whole_life() || !life_->stored_known || saves_.size() == first) return;
    const ToldSave& last = saves_.back();
    if (last.complete || last.compared) return;
    const StoredCheckpoint* checkpoint = checkpoint_of(life_->after, last.state.step);
    if (checkpoint != nullptr && !checkpoint->flaw)
      return judge_save_in(saves_.size() - 1, life_->after);
    doubt("nothing waited for the save of step " + std::to_string(last.state.step) +
          ", and it left no complete checkpoint, so it can't be judged; 'finalize' waits for it");
  }

  /// Checks that the ranks reported everything in the plan: saves, loads, steps with their loss,
  /// and the end. Without these reports there is nothing to compare.
  void require_told(std::size_t saves) {
    if (!whole_life()) {
      // If the life was killed in a phase after its load, the ranks must have reported the load.
      const bool in_load = life_->plan.kill && life_->plan.kill->phase.starts_with("load");
      if (life_->plan.kill && !in_load && kill_fired(*life_)) require_loads();
      return;
    }
    const std::size_t planned = planned_count(ProgramDoes::kSave);
    if (saves < planned) {
      doubt("the plan has " + std::to_string(planned) + " saves, but the ranks report " +
            std::to_string(saves));
    }
    require_loads();
    require_steps();
    Findings ignored;
    const auto ends = states_of(life_->ranks, StateMoment::kEnd, number_, ignored);
    if (ends.empty()) {
      doubt("not all ranks report what they hold at the end");
    } else if (ends.back().tensors.empty()) {
      doubt("the ranks report no tensors at the end");
    }
  }

  std::size_t planned_count(ProgramDoes does) const {
    return static_cast<std::size_t>(
        std::count_if(life_->plan.steps.begin(), life_->plan.steps.end(),
                      [does](const ProgramStep& step) { return step.does == does; }));
  }

  void require_loads() {
    const std::size_t planned = planned_count(ProgramDoes::kLoad) + (number_ > 0 ? 1 : 0);
    if (loads_.empty() && planned > 0) return void(doubt("no rank reports what it loaded"));
    if (loads_.size() >= planned) return;
    doubt("the plan has " + std::to_string(planned) + " loads, but the ranks report " +
          std::to_string(loads_.size()));
  }

  /// If an exit code is planned for the life, ranks need not report the steps of its last training.
  void require_steps() {
    std::size_t planned = 0;
    std::size_t last = 0;
    for (const auto& step : life_->plan.steps) {
      if (step.does == ProgramDoes::kTrain) last = static_cast<std::size_t>(step.steps);
      planned += static_cast<std::size_t>(step.steps);
    }
    if (life_->plan.exit != 0) planned -= last;
    for (const auto& rank : life_->ranks) {
      if (rank.steps.size() >= planned) continue;
      return void(doubt("the plan has " + std::to_string(planned) + " steps, but rank " +
                        std::to_string(rank.rank) + " reports " +
                        std::to_string(rank.steps.size())));
    }
    const StepTable table(life_->ranks);
    for (const auto& [time, row] : table.rows()) {
      if (metric_in(row, "loss")) continue;
      return void(doubt("no rank reports the loss of step " + std::to_string(time.step)));
    }
  }

  /// True if a later save of this life overwrote this save's checkpoint, because it has the same
  /// step or because all saves go to one folder.
  bool saved_again(std::size_t save) const {
    for (std::size_t i = save + 1; i < saves_.size(); ++i) {
      if (saves_[i].state.step == saves_[save].state.step || shares_folder(life_->after))
        return true;
    }
    return false;
  }

  /// True if the trainer keeps a limited number of checkpoints, and this one is too old to be kept.
  bool may_be_gone(std::size_t save) const {
    const auto later = std::count_if(saves_.begin() + static_cast<std::ptrdiff_t>(save) + 1,
                                     saves_.end(), [](const ToldSave& s) { return s.complete; });
    return plan_.trainer.keeps && later >= *plan_.trainer.keeps;
  }

  void judge_loaded_step() {
    if (!plan_.expect.loaded_step) return;
    const std::int64_t step = loads_.empty() ? -1 : loads_.back().step;
    if (step == *plan_.expect.loaded_step) return;
    find(judged::kVerdictDisagreement, "the loaded step should be " +
                                           std::to_string(*plan_.expect.loaded_step) + " and is " +
                                           (step < 0 ? "none" : std::to_string(step)))
        .phase = "load";
  }

  void judge_trajectory() {
    judge_finite_losses(number_, *life_, findings_);
    const LifeEvidence* uninterrupted = controls_.uninterrupted;
    const LifeEvidence* reference = reference_of(plan_, number_, controls_);
    const auto again = controls_.again.find(number_);
    if (again != controls_.again.end()) judge_again(*again->second);
    if (reference == nullptr) return;
    const bool is_again = reference != uninterrupted;
    if (!is_again) {
      judge_course(number_, *life_,
                   {.life = *uninterrupted,
                    .called = "the uninterrupted run",
                    .same_end = number_ + 1 == plan_.lives.size() && whole_life(),
                    .same_start = number_ == 0,
                    .may_hold_more = faulted()},
                   course_);
    } else if (uninterrupted != nullptr) {
      judge_schedule(number_, *life_, *uninterrupted, course_);
      judge_first_loss(number_, *life_, *uninterrupted, plan_.expect.loss_within, course_);
    }
  }

  /// True if a fault was planned for this life or an earlier one.
  bool faulted() const {
    return std::any_of(plan_.lives.begin(),
                       plan_.lives.begin() + static_cast<std::ptrdiff_t>(number_) + 1,
                       [](const ProgramLife& life) { return life.rerun.has_value(); });
  }

  /// Compares the life with a second run from the same checkpoint. If the life is compared with the
  /// uninterrupted run anyway, the second run only shows whether the program is deterministic.
  void judge_again(const LifeEvidence& again) {
    const bool judges = reference_of(plan_, number_, controls_) == &again;
    Findings found;
    judge_course(number_, *life_,
                 {.life = again,
                  .called = "a second run from the same checkpoint",
                  .same_end = judges && number_ + 1 == plan_.lives.size() && whole_life(),
                  .same_start = true,
                  .may_hold_more = faulted()},
                 found);
    for (auto& finding : found) {
      if (judges || finding.untouched) course_.push_back(std::move(finding));
    }
  }

  const ProgramPlan& plan_;
  const std::vector<LifeEvidence>& lives_;
  const ControlRuns& controls_;
  std::size_t number_ = 0;
  const LifeEvidence* life_ = nullptr;
  std::vector<ToldSave> saves_;
  std::vector<WholeState> loads_;  ///< loads of this life
  Findings control_end_;           ///< how the ranks of the uninterrupted run disagree at its end
  Findings course_;                ///< consequences of other findings; reported last
};

/// Returns why a run that loaded nothing can't be compared with this life; empty if it can.
std::string flaw_of_cold(const LifeEvidence& life, const LifeEvidence& cold) {
  if (!cold.unread.empty()) return cold.unread.front().text;
  if (!ended_as_planned(cold)) return "it failed: " + why_ended(cold);
  if (cold.ranks.size() != life.ranks.size()) return "it has a different number of ranks";
  for (const auto& rank : cold.ranks) {
    if (rank.layout != life.plan.layout) return "it has another layout";
  }
  Findings ignored;
  const auto loaded = merge_states(cold.ranks, StateMoment::kLoaded, 0, 0, ignored);
  if (!loaded)
    return "not all of its ranks report a state 'loaded', which is what they hold instead";
  if (loaded->step != loaded_by(life)) return "it begins at another step";
  return "";
}

}  // namespace

bool after_change(const ProgramPlan& plan, std::size_t life) {
  for (std::size_t i = 0; i <= life && i < plan.lives.size(); ++i) {
    if (plan.lives[i].layout != plan.lives.front().layout) return true;
  }
  return false;
}

bool kill_fired(const LifeEvidence& life) {
  if (!life.plan.kill) return false;
  const ProgramKill& kill = *life.plan.kill;
  const auto rank = static_cast<std::size_t>(kill.rank);
  if (rank >= life.ends.size() || rank >= life.ranks.size()) return false;
  std::int64_t begun = 0;
  bool open = kill.phase.empty();
  for (const auto& phase : life.ranks[rank].phases) {
    if (phase.name != kill.phase) continue;
    if (phase.begins) ++begun;
    open = phase.begins;
  }
  const bool there = open && (kill.phase.empty() || begun == kill.occurrence);
  return there && life.ends[rank].exit_code == kKilled && !life.ends[rank].timed_out &&
         !life.ends[rank].cut_short;
}

bool fault_came(const LifeEvidence& life) {
  const auto reported = [](const RankWitness& rank) {
    return std::any_of(rank.phases.begin(), rank.phases.end(), [](const WitnessPhase& phase) {
      return phase.begins && phase.name == kRerunFault;
    });
  };
  if (!life.plan.rerun->rank) return std::any_of(life.ranks.begin(), life.ranks.end(), reported);
  const auto rank = static_cast<std::size_t>(*life.plan.rerun->rank);
  return rank < life.ranks.size() && reported(life.ranks[rank]);
}

bool ended_as_planned(const LifeEvidence& life) {
  if (life.plan.command) return life.complaint.empty();
  if (life.plan.kill) return kill_fired(life);
  return std::all_of(life.ends.begin(), life.ends.end(), [&](const ProgramEnd& end) {
    return end.exit_code == life.plan.exit && !end.timed_out && !end.cut_short;
  });
}

bool timed_out(const LifeEvidence& life) {
  return std::any_of(life.ends.begin(), life.ends.end(),
                     [](const ProgramEnd& end) { return end.timed_out; });
}

std::string why_ended(const LifeEvidence& life) {
  const auto failed = std::find_if(life.ends.begin(), life.ends.end(), [](const ProgramEnd& end) {
    return end.timed_out || (end.exit_code != 0 && !end.cut_short);
  });
  if (failed == life.ends.end()) return "it did not end as planned";
  if (!failed->timed_out) return failed->log;
  return "it did not finish within " + std::to_string(failed->seconds) + " s (" + failed->limit +
         ")" + (failed->log.empty() ? "" : ": " + failed->log);
}

const LifeEvidence* reference_of(const ProgramPlan& plan, std::size_t life,
                                 const ControlRuns& controls) {
  const bool like_control = plan.expect.goes_on == GoesOn::kLikeControl && after_change(plan, life);
  if (!like_control) return controls.uninterrupted;
  const auto again = controls.again.find(life);
  return again == controls.again.end() ? nullptr : again->second;
}

Findings judge_program(const ProgramPlan& plan, const std::vector<LifeEvidence>& lives,
                       const ControlRuns& controls) {
  Findings findings;
  ProgramJudge(plan, lives, controls, findings).judge();
  return findings;
}

void judge_control(const LifeEvidence& failed, const std::string& called, Findings& findings) {
  const bool late = timed_out(failed);
  Findings all;
  all.push_back({.code = late ? FindingCode(passed_on::kHang) : FindingCode(Code::kIo),
                 .text = called + " failed: " + why_ended(failed),
                 .severity = Severity::kInconclusive,
                 .at_deadline = late});
  all.append(findings);
  findings = std::move(all);
}

const Finding* first_failure(const Findings& findings) {
  for (const auto& finding : findings) {
    if (finding.fails()) return &finding;
  }
  return nullptr;
}

void judge_cold_life(const ProgramPlan& plan, std::vector<LifeEvidence> lives,
                     const LifeEvidence& cold, const ControlRuns& controls, Findings& findings) {
  const std::size_t number = lives.size() - 1;
  const auto doubt = [&](const std::string& text,
                         SourceLine line = SourceLine::here()) -> Finding& {
    return findings.push_back({.code = judged::kOracleVacuous,
                               .text = text,
                               .line = line,
                               .severity = Severity::kInconclusive,
                               .life = number});
  };
  const std::string flaw = flaw_of_cold(lives.back(), cold);
  if (!flaw.empty()) {
    doubt("the cold run can't be compared: " + flaw).at_deadline = timed_out(cold);
    return;
  }
  Findings course;
  judge_course(number, cold, {.life = lives.back(), .called = "this life"}, course);
  if (course.empty()) {
    doubt(life_name(number) +
          " trains and ends as a life that loads nothing: what it loaded had no effect");
    return;
  }
  LifeEvidence& last = lives.back();
  last.plan = cold.plan;
  last.ends = cold.ends;
  last.ranks = cold.ranks;
  last.unread = cold.unread;
  if (first_failure(judge_program(plan, lives, controls)) != nullptr) return;
  doubt(life_name(number) + " would pass although it loads nothing");
}

}  // namespace reprise::driver
