#include "driver/witness/program_judge.hpp"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "core/base/hash.hpp"
#include "driver/witness/command_judge.hpp"
#include "driver/witness/course_judge.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr int kKilled = 128 + SIGKILL;

/// A save that the ranks' witness files describe.
struct ToldSave {
  WholeState state;
  bool complete = true;  ///< false if the life may have ended before the save was complete
};

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

/// True if the last save of the life must be complete: it was not asynchronous, or a later step
/// waited for it.
bool last_save_ended(const ProgramPlan& plan, const ProgramLife& life) {
  bool ended = true;
  for (const auto& step : life.steps) {
    if (step.does == ProgramDoes::kSave) ended = !is_async(plan, life, step);
    if (step.does == ProgramDoes::kFinalize) ended = true;
  }
  return ended;
}

/// Returns the shortest prefix of `key` that ends before a dot and is a prefix of no key in `told`;
/// `key` itself if there is none.
std::string untold_prefix(const std::string& key, const std::set<std::string>& told) {
  for (auto dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1)) {
    const auto next = told.lower_bound(key.substr(0, dot));
    if (next == told.end() || !next->starts_with(key.substr(0, dot))) return key.substr(0, dot);
  }
  return key;
}

/// Lists the keys that no rank described. Keys with the same untold_prefix() are joined:
/// "optim.groups (23), sched.last_epoch".
std::string listed(const std::vector<std::string>& untold, const std::set<std::string>& told) {
  std::map<std::string, std::vector<std::string>> prefixes;
  for (const auto& key : untold) prefixes[untold_prefix(key, told)].push_back(key);
  std::string text;
  for (const auto& [prefix, keys] : prefixes) {
    text += (text.empty() ? "" : ", ") +
            (keys.size() == 1 ? keys.front() : prefix + " (" + std::to_string(keys.size()) + ")");
  }
  return text;
}

/// Judges the lives in order and remembers what was saved.
class ProgramJudge {
 public:
  ProgramJudge(const ProgramPlan& plan, const std::vector<LifeEvidence>& lives,
               const ControlRuns& controls)
      : plan_(plan), lives_(lives), controls_(controls) {}

  WitnessFindings judge() && {
    for (number_ = 0; number_ < lives_.size(); ++number_) {
      life_ = &lives_[number_];
      judge_life();
    }
    judge_samples(lives_, controls_.uninterrupted, findings_);
    findings_.insert(findings_.end(), course_.begin(), course_.end());
    return std::move(findings_);
  }

 private:
  void find(RulingCode code, const std::string& text, std::optional<std::int64_t> rank = {}) {
    findings_.push_back(
        {.code = code, .text = life_name(number_) + ": " + text, .rank = rank, .life = number_});
  }

  void judge_life() {
    if (life_->plan.command) return judge_command(number_, *life_, findings_);
    for (const auto& text : life_->unread) find(Code::kTornFile, text);
    judge_start();
    const auto loads = states_of(life_->ranks, StateMoment::kLoaded, number_, findings_);
    if (number_ > 0 && loads.empty() && ended_as_planned(*life_) && !life_->plan.kill) {
      find(judged::kOracleVacuous, "no rank tells what it loaded");
      findings_.back().inconclusive = true;
    }
    if (!loads.empty()) judge_load(loads.front());
    judge_end();
    judge_saves();
    const auto end = states_of(life_->ranks, StateMoment::kEnd, number_, findings_);
    if (number_ + 1 == plan_.lives.size()) judge_loaded_step(loads);
    judge_trajectory();
  }

  /// Checks that the rank, world and layout in each witness file are those with which the driver
  /// started the rank.
  void judge_start() {
    const auto world = static_cast<std::int64_t>(life_->ends.size());
    for (std::size_t i = 0; i < life_->ranks.size(); ++i) {
      const RankWitness& rank = life_->ranks[i];
      const bool same = rank.rank == static_cast<std::int64_t>(i) && rank.world == world &&
                        rank.layout == life_->plan.layout;
      if (same || (rank.states.empty() && rank.steps.empty() && rank.world == 0)) continue;
      find(Code::kLayoutMismatch, rank.file + " is of another rank, world or layout", rank.rank);
    }
  }

  // --- how it ended ------------------------------------------------------------------------------

  void judge_end() {
    if (life_->plan.kill) {
      if (kill_fired(*life_)) return;
      const auto& kill = *life_->plan.kill;
      find(judged::kOracleVacuous, "the kill of rank " + std::to_string(kill.rank) + " in " +
                                       kill.phase + " never came" + first_failure());
      findings_.back().inconclusive = true;
      return;
    }
    for (std::size_t rank = 0; rank < life_->ends.size(); ++rank) judge_end_of(rank);
  }

  std::string first_failure() const {
    for (std::size_t rank = 0; rank < life_->ends.size(); ++rank) {
      const ProgramEnd& end = life_->ends[rank];
      if (end.exit_code == 0 || end.cut_short) continue;
      return "; rank " + std::to_string(rank) + " ended with " + std::to_string(end.exit_code) +
             ": " + end.log;
    }
    return "";
  }

  void judge_end_of(std::size_t rank) {
    const ProgramEnd& end = life_->ends[rank];
    const auto number = static_cast<std::int64_t>(rank);
    const std::string who = "rank " + std::to_string(rank);
    if (end.cut_short) return;  // the cause is reported for the rank that failed first
    if (end.timed_out) {
      find(passed_on::kHang, who + " was still running at the deadline: " + end.log, number);
    } else if (end.exit_code != life_->plan.exit) {
      find(judged::kVerdictDisagreement,
           who + " was to end with " + std::to_string(life_->plan.exit) + " and ended with " +
               std::to_string(end.exit_code) +
               (end.left_some ? ", and left processes behind" : "") + ": " + end.log,
           number);
    } else if (rank < life_->ranks.size()) {
      const RankWitness& witness = life_->ranks[rank];
      const bool told = life_->plan.exit == 0 || witness.exit == life_->plan.exit;
      if (witness.done && told && !witness.torn) return;
      find(
          judged::kVerdictDisagreement,
          who + " ended with " + std::to_string(end.exit_code) + " and its witness does not say so",
          number);
    }
  }

  // --- saves -------------------------------------------------------------------------------------

  void judge_saves() {
    const auto states = states_of(life_->ranks, StateMoment::kSave, number_, findings_);
    const bool whole_life = ended_as_planned(*life_) && !life_->plan.kill;
    for (std::size_t i = 0; i < states.size(); ++i) {
      const bool last = i + 1 == states.size();
      const bool ended = !last || (whole_life && last_save_ended(plan_, life_->plan));
      const bool in_load = life_->plan.kill && life_->plan.kill->phase.starts_with("load");
      saves_.push_back({states[i], ended || in_load});
    }
    if (whole_life) require_told(states.size());
    const std::size_t first = saves_.size() - states.size();
    for (std::size_t i = first; i < saves_.size(); ++i) {
      if (life_->stored_known && saves_[i].complete && !saved_again(i)) judge_save(i);
    }
  }

  /// Checks that the ranks described their state at each planned save. Without that there is
  /// nothing to compare the save with.
  void require_told(std::size_t told) {
    const auto planned = static_cast<std::size_t>(
        std::count_if(life_->plan.steps.begin(), life_->plan.steps.end(),
                      [](const ProgramStep& step) { return step.does == ProgramDoes::kSave; }));
    if (told >= planned || life_->plan.exit != 0) return;
    find(judged::kOracleVacuous, "the plan has " + std::to_string(planned) +
                                     " saves, and the ranks tell of " + std::to_string(told));
    findings_.back().inconclusive = true;
  }

  /// True if a later save of this life overwrote the checkpoint of this save: it has the same step,
  /// or all saves go to one folder.
  bool saved_again(std::size_t save) const {
    for (std::size_t i = save + 1; i < saves_.size(); ++i) {
      if (saves_[i].state.step == saves_[save].state.step || shares_folder(life_->after))
        return true;
    }
    return false;
  }

  bool is_newest(std::size_t save) const {
    return std::none_of(saves_.begin() + static_cast<std::ptrdiff_t>(save) + 1, saves_.end(),
                        [](const ToldSave& later) { return later.complete; });
  }

  void judge_save(std::size_t save) {
    const WholeState& live = saves_[save].state;
    const StoredCheckpoint* stored = checkpoint_of(life_->after, live.step);
    const std::string where = "the save of step " + std::to_string(live.step);
    if (stored == nullptr) {
      if (is_newest(save))
        find(judged::kCommitMissing, where +
                                         " left no checkpoint that can be read: one of "
                                         "torch.distributed.checkpoint or torch_dist");
      return;
    }
    if (stored->flaw) return find(stored->flaw->code, where + ": " + stored->flaw->text);
    for (const auto& [key, tensor] : live.tensors) judge_stored(save, where, key, tensor, *stored);
    for (const auto& [name, digest] : live.objects) judge_stored_object(where, name, *stored);
    judge_unwitnessed(where, live, *stored);
  }

  void judge_stored(std::size_t save, const std::string& where, const std::string& key,
                    const WholeTensor& live, const StoredCheckpoint& stored) {
    const std::string what = where + ": " + key;
    if (const auto unread = stored.unread.find(key); unread != stored.unread.end()) {
      return find(unread->second.code, what + ": " + unread->second.text);
    }
    const auto found = stored.tensors.find(key);
    if (found == stored.tensors.end()) {
      return find(judged::kLostObject, what + " is held and not stored");
    }
    const StoredDigest& there = found->second;
    if (there.dtype != live.dtype) {
      return find(Code::kDtypeDrift, what + " is " + std::string(name_of(live.dtype)) +
                                         " and stored as " + std::string(name_of(there.dtype)));
    }
    if (!(there.shape == live.shape)) return find(Code::kShapeDrift, what + " has another shape");
    if (there.digest == live.digest) return;
    const auto other = other_time_of(save, key, there.digest);
    find(other ? other->first : judged::kBitMismatch,
         what + " holds other bits than were live at the save" + (other ? other->second : ""));
    findings_.back().key = key;
    findings_.back().saved = saves_[save].state.step;
    findings_.back().step = saves_[save].state.step;
  }

  /// Searches earlier saves and later states of this life for one in which the tensor had this
  /// content. Returns the code of the failure and a text that names the step; nothing if there is
  /// no such state.
  std::optional<std::pair<RulingCode, std::string>> other_time_of(std::size_t save,
                                                                  const std::string& key,
                                                                  std::uint64_t digest) const {
    for (std::size_t i = save; i-- > 0;) {
      const auto& tensors = saves_[i].state.tensors;
      const auto tensor = tensors.find(key);
      if (tensor == tensors.end() || tensor->second.digest != digest) continue;
      return std::pair(
          RulingCode(judged::kStaleBytes),
          ": it is what the save of step " + std::to_string(saves_[i].state.step) + " found");
    }
    WitnessFindings ignored;
    for (const StateMoment when : {StateMoment::kSave, StateMoment::kEnd}) {
      for (const auto& later : states_of(life_->ranks, when, number_, ignored)) {
        const auto tensor = later.tensors.find(key);
        if (later.step <= saves_[save].state.step || tensor == later.tensors.end()) continue;
        if (tensor->second.digest != digest) continue;
        return std::pair(RulingCode(judged::kTornSnapshot),
                         ": it is from step " + std::to_string(later.step) +
                             ", which was trained during the save");
      }
    }
    return std::nullopt;
  }

  void judge_stored_object(const std::string& where,
                           const std::pair<std::string, std::string>& name,
                           const StoredCheckpoint& stored) {
    const std::string item = name.first + "/shard_" + name.second;
    const auto prefixed = stored.objects.lower_bound(item);
    const bool sharded =
        prefixed != stored.objects.end() && prefixed->starts_with(item) &&
        (name.second.empty() || *prefixed == item || (*prefixed)[item.size()] == '_');
    const bool plain = name.second.empty() &&
                       (stored.objects.contains(name.first) || stored.tensors.contains(name.first));
    if (sharded || plain) return;
    find(judged::kLostObject,
         where + ": " + (name.second.empty() ? name.first : item) + " is held and not stored");
    findings_.back().key = "";
  }

  /// Reports stored keys that no rank described. Either an earlier save left them, or the trainer's
  /// witness describes too little.
  void judge_unwitnessed(const std::string& where, const WholeState& live,
                         const StoredCheckpoint& stored) {
    const auto is_allowed = [&](const std::string& key) {
      return key.starts_with("common_state/shard_") ||
             std::any_of(plan_.expect.unwitnessed.begin(), plan_.expect.unwitnessed.end(),
                         [&](const std::string& prefix) { return key.starts_with(prefix); });
    };
    std::set<std::string> told;
    for (const auto& [key, tensor] : live.tensors) told.insert(key);
    for (const auto& [name, digest] : live.objects) told.insert(name.first);
    std::vector<std::string> untold;
    for (const auto& [key, tensor] : stored.tensors) {
      if (!told.contains(key) && !is_allowed(key)) untold.push_back(key);
    }
    for (const auto& key : stored.objects) {
      const std::string name = key.substr(0, key.rfind("/shard_"));
      if (!told.contains(name) && !is_allowed(key)) untold.push_back(name);
    }
    if (untold.empty()) return;
    find(judged::kOracleVacuous, where + " holds " + std::to_string(untold.size()) +
                                     (untold.size() == 1 ? " key" : " keys") +
                                     " that no rank told of: " + listed(untold, told) +
                                     "; 'unwitnessed' may name what never changes");
    findings_.back().inconclusive = true;
  }

  // --- loads -------------------------------------------------------------------------------------

  const ToldSave* save_at(std::int64_t step) const {
    for (auto save = saves_.rbegin(); save != saves_.rend(); ++save) {
      if (save->state.step == step) return &*save;
    }
    return nullptr;
  }

  void judge_load(const WholeState& loaded) {
    const ToldSave* save = save_at(loaded.step);
    if (save == nullptr) {
      return find(judged::kStaleBytes, "it loaded step " + std::to_string(loaded.step) +
                                           ", and nothing saved that step");
    }
    if (judge_mixture(loaded, *save)) return;
    const StoredCheckpoint* stored = checkpoint_of(life_->before, loaded.step);
    for (const auto& [key, live] : save->state.tensors) {
      const auto there = loaded.tensors.find(key);
      if (there == loaded.tensors.end()) {
        find(judged::kLostObject, key + " is in the checkpoint of step " +
                                      std::to_string(loaded.step) +
                                      " and nobody has it after the load");
      } else if (there->second.digest != live.digest) {
        find_wrong_load(key, loaded, live, there->second.digest, stored);
      }
    }
    judge_loaded_objects(loaded, save->state);
  }

  void find_wrong_load(const std::string& key, const WholeState& loaded, const WholeTensor& live,
                       std::uint64_t digest, const StoredCheckpoint* stored) {
    const StoredDigest* there = nullptr;
    if (stored != nullptr && stored->tensors.contains(key)) there = &stored->tensors.at(key);
    std::string who = ": the checkpoint could not be asked who is wrong";
    if (there != nullptr) {
      who = there->digest == live.digest ? ": the checkpoint has the right ones, the load is wrong"
            : there->digest == digest    ? ": the checkpoint has the wrong ones, the save is wrong"
                                         : ": the checkpoint has neither, save and load are wrong";
    }
    find(judged::kBitMismatch, "after the load of step " + std::to_string(loaded.step) + ", " +
                                   key + " has other bits than were live at the save" + who);
    findings_.back().key = key;
    findings_.back().saved = loaded.step;
    findings_.back().step = loaded.step;
    findings_.back().when = StateMoment::kLoaded;
  }

  /// Returns the step of another save in which the tensor had this content.
  std::optional<std::int64_t> other_save_of(const std::string& key, std::uint64_t digest,
                                            const ToldSave& save) const {
    for (auto other = saves_.rbegin(); other != saves_.rend(); ++other) {
      const auto tensor = other->state.tensors.find(key);
      if (&*other == &save || tensor == other->state.tensors.end()) continue;
      if (tensor->second.digest == digest) return other->state.step;
    }
    return std::nullopt;
  }

  /// Reports a load whose tensors come from several saves, or all from a save of another step.
  /// Returns true if it reported one.
  bool judge_mixture(const WholeState& loaded, const ToldSave& save) {
    // Maps the step of another save to one key whose content comes from that save.
    std::map<std::int64_t, std::string> from;
    bool own = false;
    for (const auto& [key, live] : save.state.tensors) {
      const auto there = loaded.tensors.find(key);
      if (there == loaded.tensors.end()) continue;
      const auto other = other_save_of(key, there->second.digest, save);
      if (there->second.digest == live.digest) {
        own = own || !other;
      } else if (other) {
        from.emplace(*other, key);
      }
    }
    if (from.empty()) return false;
    const auto& [step, key] = *from.begin();
    const bool mixed = own || from.size() > 1;
    find(mixed ? judged::kMixedGeneration : judged::kStaleBytes,
         "after the load of step " + std::to_string(loaded.step) + ", " + key +
             " is from the save of step " + std::to_string(step) +
             (mixed ? ", and other tensors are not" : ", and so is all that changes"));
    return true;
  }

  void judge_loaded_objects(const WholeState& loaded, const WholeState& live) {
    for (const auto& [name, digest] : live.objects) {
      const auto there = loaded.objects.find(name);
      if (there == loaded.objects.end() || !digest || !there->second) continue;
      if (*digest == *there->second) continue;
      find(judged::kLostObject, "after the load of step " + std::to_string(loaded.step) + ", " +
                                    name.first + (name.second.empty() ? "" : " " + name.second) +
                                    " is not what it was at the save");
    }
  }

  void judge_loaded_step(const std::vector<WholeState>& loads) {
    if (!plan_.expect.loaded_step) return;
    const std::int64_t step = loads.empty() ? -1 : loads.back().step;
    if (step == *plan_.expect.loaded_step) return;
    find(judged::kVerdictDisagreement, "the loaded step was to be " +
                                           std::to_string(*plan_.expect.loaded_step) + " and is " +
                                           (step < 0 ? "none" : std::to_string(step)));
  }

  void judge_trajectory() {
    const LifeEvidence* reference = reference_of(plan_, number_, controls_);
    if (reference == nullptr) return;
    const bool again = reference != controls_.uninterrupted;
    judge_course(number_, *life_, *reference,
                 again ? "a second run from the same checkpoint" : "the uninterrupted run",
                 course_);
    if (again && controls_.uninterrupted != nullptr) {
      judge_schedule(number_, *life_, *controls_.uninterrupted, course_);
    }
  }

  const ProgramPlan& plan_;
  const std::vector<LifeEvidence>& lives_;
  const ControlRuns& controls_;
  std::size_t number_ = 0;
  const LifeEvidence* life_ = nullptr;
  std::vector<ToldSave> saves_;
  WitnessFindings findings_;
  WitnessFindings course_;  ///< consequences of other findings; reported last
};

}  // namespace

bool after_change(const ProgramPlan& plan, std::size_t life) {
  for (std::size_t i = 0; i <= life && i < plan.lives.size(); ++i) {
    if (plan.lives[i].layout != plan.lives.front().layout) return true;
  }
  return false;
}

bool kill_fired(const LifeEvidence& life) {
  if (!life.plan.kill) return false;
  const auto rank = static_cast<std::size_t>(life.plan.kill->rank);
  if (rank >= life.ends.size() || rank >= life.ranks.size()) return false;
  const auto& phases = life.ranks[rank].phases;
  const bool there = std::any_of(phases.begin(), phases.end(), [&](const WitnessPhase& phase) {
    return phase.begins && phase.name == life.plan.kill->phase;
  });
  return there && life.ends[rank].exit_code == kKilled && !life.ends[rank].timed_out &&
         !life.ends[rank].cut_short;
}

bool ended_as_planned(const LifeEvidence& life) {
  if (life.plan.command) return life.complaint.empty();
  if (life.plan.kill) return kill_fired(life);
  return std::all_of(life.ends.begin(), life.ends.end(), [&](const ProgramEnd& end) {
    return end.exit_code == life.plan.exit && !end.timed_out && !end.cut_short;
  });
}

const LifeEvidence* reference_of(const ProgramPlan& plan, std::size_t life,
                                 const ControlRuns& controls) {
  const bool like_control = plan.expect.goes_on == GoesOn::kLikeControl && after_change(plan, life);
  if (!like_control) return controls.uninterrupted;
  const auto again = controls.again.find(life);
  return again == controls.again.end() ? nullptr : again->second;
}

WitnessFindings judge_program(const ProgramPlan& plan, const std::vector<LifeEvidence>& lives,
                              const ControlRuns& controls) {
  return ProgramJudge(plan, lives, controls).judge();
}

}  // namespace reprise::driver
