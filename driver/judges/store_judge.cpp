#include "driver/judges/store_judge.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <sstream>

#include "core/base/codes.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/generations.hpp"
#include "core/checkpoint/safetensors_files.hpp"
#include "core/checkpoint/stored_tracker.hpp"
#include "core/ports/no_progress.hpp"
#include "core/ports/tasks_at_once.hpp"
#include "core/save/commit_protocol.hpp"
#include "core/verify/verify.hpp"
#include "properties/finding_code.hpp"
#include "properties/slot_keys.hpp"
#include "reprise/error.hpp"
#include "sim/job/extra_tensor.hpp"
#include "sim/job/rerun/rerun_machine.hpp"

namespace reprise::driver {
namespace {

std::string printed(Step step) { return std::to_string(step.value); }

/// The same as verify() of the store, which opens more formats than jobs save.
VerifyReport verified(const JudgedStore& where, const std::string& path, PayloadCheck payload,
                      Progress& progress) {
  std::optional<Checkpoint> checkpoint;
  try {
    checkpoint.emplace(where.open(path));
  } catch (const Error&) {
    return verify(where.store, path, payload, progress);
  }
  if (may_hold_safetensors(checkpoint->catalog())) {
    return verify(where.store, path, payload, progress);
  }
  TasksAtOnce tasks;
  return verify(*checkpoint, payload, {tasks, progress});
}

/// Returns what is wrong with the checkpoint at `path`; empty if it is whole.
std::string wrong_with(const JudgedStore& where, const std::string& path, PayloadCheck payload) {
  NoProgress unwatched;
  try {
    const VerifyReport report = verified(where, path, payload, unwatched);
    if (report.vacuous()) return "it is empty";
    for (const auto& finding : report.findings) {
      if (finding.severity != reprise::Severity::kError) continue;
      std::ostringstream text;
      text << finding;
      return text.str();
    }
    return report.location ? "" : "it does not exist";
  } catch (const Error& error) {
    return error.what();
  }
}

/// True if the checkpoint of this save may be damaged. If the save did not end, its step may still
/// have the checkpoint of an earlier save. In that case, damage to the earlier checkpoint is
/// considered as well.
bool may_be_damaged(const std::vector<SavePoint>& saves, const SavePoint& save) {
  if (save.damaged || save.certain) return save.damaged;
  return std::any_of(saves.data(), &save, [&save](const SavePoint& before) {
    return before.step == save.step && before.damaged;
  });
}

/// Returns the payload files that hold something and that the metadata does not name. A rank with
/// nothing to write may leave an empty file.
std::vector<std::string> unnamed_payload(Store& store, const Checkpoint& checkpoint) {
  std::vector<std::string> unnamed;
  const auto& named = checkpoint.catalog().files;
  for (const Entry& entry : store.list(checkpoint.location().directory)) {
    if (entry.directory || entry.size == 0 || !entry.name.ends_with(".distcp")) continue;
    if (std::find(named.begin(), named.end(), entry.name) == named.end()) {
      unnamed.push_back(entry.name);
    }
  }
  return unnamed;
}

class StoreJudge : judged::Finder {
 public:
  StoreJudge(const JudgedStore& stored, const CheckpointPlan& plan, const Past& past,
             judged::Findings& findings)
      : Finder(findings, {}),
        judged_(stored),
        store_(stored.store),
        plan_(plan),
        past_(past),
        newest_(newest_certain(past.saves)),
        named_(tracked_step(stored.store, kCheckpointRoot)),
        passed_over_(passed_over(past.saves)) {}

  void judge() {
    if (newest_ >= 0) {
      judge_tracker();
      judge_kept();
    }
    judge_stored();
    judge_rerun();
  }

 private:
  const SavePoint& newest() const { return past_.saves[static_cast<std::size_t>(newest_)]; }

  void judge_tracker() {
    if (past_.tracker_damaged) return;
    if (!named_) {
      find(judged::kCommitMissing,
           "the save of step " + printed(newest().step) + " succeeded, but no tracker names it");
      return;
    }
    const SavePoint* save = save_of(past_.saves, *named_);
    if (save == nullptr || !may_be_damaged(past_.saves, *save)) {
      const std::string wrong = wrong_with(judged_, kCheckpointRoot, PayloadCheck::kRead);
      if (wrong.empty()) {
        whole_ = named_;
      } else {
        find(Code::kTrackerDangling,
             "the tracker names step " + printed(*named_) + ", which is not whole: " + wrong);
      }
    }
    if (save != nullptr && save - past_.saves.data() >= newest_) return;
    find(judged::kCommitMissing, "the save of step " + printed(newest().step) +
                                     " succeeded, but the tracker names step " + printed(*named_));
  }

  /// Returns the saves that a load may have skipped as damaged: saves of earlier lives that are
  /// newer than the checkpoint loaded by the last life that saved. They need not be damaged on
  /// disk, because a failed read looks the same.
  static std::set<const SavePoint*> passed_over(std::span<const SavePoint> saves) {
    std::set<const SavePoint*> found;
    if (saves.empty()) return found;
    const SavePoint& last = saves.back();
    for (auto save = saves.rbegin(); save != saves.rend(); ++save) {
      if (save->life == last.life) continue;
      if (!last.parent_step || save->step.value <= *last.parent_step) break;
      found.insert(&*save);
    }
    return found;
  }

  /// Returns the last save of each step, newest first.
  static std::vector<const SavePoint*> newest_first(std::span<const SavePoint> all) {
    std::vector<const SavePoint*> saves;
    std::set<Step> steps;
    for (auto save = all.rbegin(); save != all.rend(); ++save) {
      if (steps.insert(save->step).second) saves.push_back(&*save);
    }
    std::sort(saves.begin(), saves.end(),
              [](const SavePoint* a, const SavePoint* b) { return b->step < a->step; });
    return saves;
  }

  /// True if retention was right to remove this checkpoint after an earlier life, and no life
  /// loaded it since. It is gone, even if newer checkpoints have been damaged or replaced since
  /// then.
  bool was_beyond_the_kept(const SavePoint& save) const {
    const std::span<const SavePoint> all = past_.saves;
    const auto first = static_cast<std::size_t>(&save - all.data()) + 1;
    for (std::size_t end = all.size() - 1; end >= first; --end) {
      if (all[end].life == all[end - 1].life) continue;
      if (all[end].parent_step == save.step.value) return false;
      if (newer_than(save.step, all.first(end)) >= plan_.keep) return true;
    }
    return false;
  }

  /// True if retention does not count this save, because a load found it damaged.
  static bool is_left_out(const SavePoint& save, const std::set<const SavePoint*>& passed) {
    return save.damaged && save.certain && passed.contains(&save);
  }

  /// Returns the number of newer checkpoints that retention surely counted at the end of the last
  /// of these saves.
  static std::int64_t newer_than(Step step, std::span<const SavePoint> saves) {
    const auto passed = passed_over(saves);
    const auto newest = newest_first(saves);
    return std::count_if(newest.begin(), newest.end(), [&](const SavePoint* save) {
      return step < save->step && save->certain && !is_left_out(*save, passed);
    });
  }

  /// True if retention includes this save when it counts the newest checkpoints. It excludes saves
  /// newer than the tracker's, and damaged saves that a load skipped. It includes damaged saves
  /// that no load noticed.
  bool takes_place(const SavePoint& save) const {
    if (!past_.tracker_damaged && named_ && *named_ < save.step) return false;
    return !is_left_out(save, passed_over_);
  }

  /// Returns the saves whose checkpoints must still exist. A save is kept if there are fewer than
  /// `keep` newer saves that retention counts (see takes_place), now and after each earlier life.
  std::vector<const SavePoint*> to_be_kept() const {
    std::vector<const SavePoint*> kept;
    std::int64_t places = 0;
    for (const SavePoint* save : newest_first(past_.saves)) {
      if (plan_.keep > 0 && places >= plan_.keep) break;
      if (plan_.keep > 0 && was_beyond_the_kept(*save)) continue;
      kept.push_back(save);
      places += takes_place(*save) ? 1 : 0;
    }
    return kept;
  }

  void judge_kept() {
    for (const SavePoint* save : to_be_kept()) {
      if (!save->certain || save->damaged || save->step == whole_) continue;
      const std::string directory = CommitTarget::iteration(kCheckpointRoot, save->step).directory;
      const std::string wrong = wrong_with(judged_, directory, PayloadCheck::kSkip);
      if (wrong.empty()) continue;
      find(judged::kLastGoodDeleted,
           "the checkpoint of step " + printed(save->step) +
               " was committed and must be kept, but is not whole: " + wrong);
    }
    judge_count();
  }

  /// True if retention may have left this step out of its count, because a load skipped it as
  /// damaged. The job may have saved the step again since then. A save that began before that one
  /// had ended does not know this.
  bool may_be_left_out(Step step) const {
    const SavePoint* last = save_of(past_.saves, step);
    return std::any_of(passed_over_.begin(), passed_over_.end(), [&](const SavePoint* save) {
      return save == last || (plan_.async && save->step == step);
    });
  }

  /// Requires that a checkpoint has been removed if there are `keep` newer ones, not including
  /// those that retention may have left out of its count. Judges nothing if the last save did not
  /// end: the removal is then possibly left to the next save.
  void judge_count() {
    if (plan_.keep == 0 || !past_.saves.back().certain) return;
    std::int64_t kept = 0;
    std::int64_t beyond = 0;
    const auto present = generations(store_, kCheckpointRoot);
    for (auto one = present.rbegin(); one != present.rend(); ++one) {
      if (!one->committed || newest().step < one->step) continue;
      beyond += kept >= plan_.keep ? 1 : 0;
      kept += may_be_left_out(one->step) ? 0 : 1;
    }
    if (beyond == 0) return;
    find(judged::kRetentionExceeded, std::to_string(beyond) + " checkpoints exist beyond the " +
                                         std::to_string(plan_.keep) + " that should be kept");
  }

  void judge_stored() {
    for (const Generation& one : generations(store_, kCheckpointRoot)) {
      const SavePoint* save = save_of(past_.saves, one.step);
      if (!one.committed || (save != nullptr && may_be_damaged(past_.saves, *save))) continue;
      try {
        const Checkpoint checkpoint = judged_.open(one.directory);
        judge_payload(checkpoint, one.step);
        judge_keys(checkpoint, one.step);
      } catch (const Error&) {
        continue;  // the other rules report a checkpoint that is not whole
      }
    }
  }

  /// Requires that the checkpoint holds the payload of one save alone. Nothing else would show the
  /// rest of another save: each of its files is intact, and no load of the named ones reads it.
  void judge_payload(const Checkpoint& checkpoint, Step step) {
    const auto unnamed = unnamed_payload(store_, checkpoint);
    if (unnamed.empty()) return;
    find(judged::kMixedGeneration, "the checkpoint of step " + printed(step) +
                                       " holds payload of another save, which its metadata does "
                                       "not name: " +
                                       join_first(unnamed));
  }

  void judge_keys(const Checkpoint& checkpoint, Step step) {
    std::vector<std::string> keys;
    for (const auto& tensor : checkpoint.catalog().tensors) {
      // The extra tensor belongs to no model, so it has no slots.
      if (tensor.key != sim::kExtraKey) keys.push_back(tensor.key);
    }
    const judged::Findings found = judge_slot_keys(keys);
    if (found.empty()) return;
    find(found.front().code, found.front().key,
         "the checkpoint of step " + printed(step) + " has " + with_commas(found.size()) +
             " keys that violate the rule for optimizer slots; the first: " + found.front().text);
  }

  void judge_rerun() {
    try {
      if (!named_) return;
      Checkpoint checkpoint = judged_.open(kCheckpointRoot);
      const auto common = checkpoint.common();
      const bool known = common && common->item.value;
      const auto snapshot = known ? sim::rerun_of(*common->item.value) : std::nullopt;
      if (!snapshot || snapshot->state == sim::RerunState::kNotRunningYet ||
          snapshot->state == sim::RerunState::kWillRerunFromCheckpoint) {
        return;
      }
      find(passed_on::kIllegalStatePersisted, "the checkpoint holds the rerun state " +
                                                  std::string(sim::name_of(snapshot->state)) +
                                                  ", from which no job can continue");
    } catch (const Error&) {
      return;  // judge_tracker() reports a checkpoint that is not whole
    }
  }

  const JudgedStore& judged_;
  Store& store_;
  const CheckpointPlan& plan_;
  const Past& past_;
  std::ptrdiff_t newest_;
  std::optional<Step> named_;  ///< step in the tracker
  std::optional<Step> whole_;  ///< the same step, once its checkpoint was read and is whole
  std::set<const SavePoint*> passed_over_;
};

}  // namespace

judged::Findings judge_store(const JudgedStore& where, const CheckpointPlan& plan,
                             const Past& past) {
  judged::Findings findings;
  StoreJudge(where, plan, past, findings).judge();
  return findings;
}

}  // namespace reprise::driver
