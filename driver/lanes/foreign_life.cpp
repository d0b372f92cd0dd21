#include "driver/lanes/foreign_life.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <vector>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/base/hash.hpp"
#include "core/ports/no_progress.hpp"
#include "core/save/commit_protocol.hpp"
#include "core/seal/content_digest.hpp"
#include "core/verify/verify.hpp"
#include "driver/judges/rng_judge.hpp"
#include "driver/lanes/command_run.hpp"
#include "driver/lanes/rank_main.hpp"
#include "driver/lanes/scratch_directory.hpp"
#include "properties/finding_code.hpp"
#include "reprise/error.hpp"
#include "sim/job/modules/megatron_common.hpp"
#include "sim/world/copy_tree.hpp"

namespace reprise::driver {
namespace {

/// Returns a digest of the keys and elements of all tensors; nothing if the checkpoint can't be
/// read. The digest does not depend on how the tensors are divided into chunks.
std::optional<std::string> content_of(Store& store, const std::string& directory) try {
  Checkpoint checkpoint = Checkpoint::open(store, directory);
  std::vector<const StoredTensor*> tensors;
  for (const auto& tensor : checkpoint.catalog().tensors) tensors.push_back(&tensor);
  HostDevice device("host", 0);
  ThreadTasks tasks(1);
  NoProgress progress;
  const auto digests = content_digests(checkpoint, tensors, {device, tasks, progress}).tensors;
  Hasher content;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    content.text(tensors[t]->key);
    content.text(hex(digests[t].digest));
  }
  return hex(content.digest());
} catch (const Error&) {
  return std::nullopt;
}

/// Sets the facts that our own jobs record in the common state of a checkpoint: the age of the
/// random streams, the parts that were saved, and the parent step. What the job left out in earlier
/// loads is not recorded there. A checkpoint of another program records none of these facts.
void take_what_is_told(Store& store, const std::string& directory, SavePoint& point) try {
  Checkpoint checkpoint = Checkpoint::open(store, directory);
  const auto common = checkpoint.common();
  if (!common || !common->item.value) return;
  const sim::CommonState told = sim::decode_common(*common->item.value);
  point.ages = ages_told_by(checkpoint);
  point.random = told.parts.random;
  point.optimizer = told.parts.optimizer;
  point.parent_step = told.identity.parent_step;
} catch (const Error&) {
  return;
}

/// Exposes the lane's store as a directory while the program runs.
class OnDisk {
 public:
  explicit OnDisk(Lane& lane) : lane_(lane), own_(lane.directory()) {
    if (!own_.empty()) return;
    PosixStore copy(scratch_.path());
    sim::copy_tree({lane.store()}, {copy});
  }
  OnDisk(const OnDisk&) = delete;
  OnDisk& operator=(const OnDisk&) = delete;

  std::string path() const { return own_.empty() ? scratch_.path() : own_; }

  void take_back() {
    if (!own_.empty()) return;
    Store& store = lane_.store();
    for (const auto& entry : store.list("")) store.remove(entry.name);
    PosixStore copy(scratch_.path());
    sim::copy_tree({copy}, {store});
  }

 private:
  Lane& lane_;
  std::string own_;
  ScratchDirectory scratch_;
};

class ForeignLife {
 public:
  /// `store` is the store that the program will see.
  ForeignLife(const Scenario& scenario, std::size_t number, Store& store, const Past& past)
      : plan_(scenario.lives[number]),
        modules_(modules_of(scenario, number)),
        number_(number),
        past_(past) {
    if (!leaves()) return;
    before_ = save_of(past_.saves, *leaves());
    const bool is_there = before_ != nullptr && store.stat(directory()).has_value();
    if (is_there && !before_->damaged) content_ = content_of(store, directory());
  }

  /// Adds a finding if the command did not end as planned. The command must not leave processes
  /// behind, because these could still write after the judgement.
  void judge_end(const CommandEnd& end) {
    const std::string complaint = complaint_of(*plan_.command, end);
    if (!complaint.empty()) rule(judged::kVerdictDisagreement, complaint);
  }

  void judge_checkpoint(Store& store) {
    NoProgress unwatched;
    try {
      const VerifyReport report = verify(store, kCheckpointRoot, PayloadCheck::kRead, unwatched);
      for (const auto& finding : report.findings) {
        if (finding.severity != reprise::Severity::kError) continue;
        std::ostringstream text;
        text << finding;
        rule(Code::kTrackerDangling, "what it left is not whole: " + text.str());
        break;
      }
      count(report);
    } catch (const Error& error) {
      rule(Code::kTrackerDangling, std::string("what it left can't be read: ") + error.what());
    }
    judge_step(store);
  }

  LifeRecord record() && {
    rank_.ending = Ending::kReturned;
    LifeRecord life;
    life.layout = "command";
    life.ranks.push_back(std::move(rank_));
    life.world = 1;
    return life;
  }

 private:
  void rule(FindingCode code, const std::string& text, SourceLine line = SourceLine::here()) {
    rank_.findings.push_back({.code = code, .text = text, .line = line, .phase = "command"});
  }

  void count(const VerifyReport& report) {
    rank_.result.owns = report.tensors + report.objects > 0;
    rank_.result.compared = report.tensors + report.objects;
    rank_.result.elements = report.elements;
    if (report.location && report.location->step) {
      rank_.result.loaded_step = report.location->step->value;
    }
    rank_.last_step = rank_.result.loaded_step;
  }

  std::optional<Step> leaves() const {
    if (!plan_.command->leaves) return std::nullopt;
    return Step{*plan_.command->leaves};
  }
  std::string directory() const {
    return CommitTarget::iteration(kCheckpointRoot, leaves().value_or(Step{})).directory;
  }

  /// If the program was required to leave a checkpoint, checks that the tracker names it, and adds
  /// it to the saves. If an earlier life saved the same step, both checkpoints must have the same
  /// tensor contents.
  void judge_step(Store& store) {
    if (!leaves()) return;
    const Step step = *leaves();
    if (rank_.result.loaded_step != step.value) {
      rule(judged::kCommitMissing,
           "the command should have left a checkpoint of step " + std::to_string(step.value) +
               ", but the tracker names " +
               (rank_.result.loaded_step < 0 ? "none" : std::to_string(rank_.result.loaded_step)));
      return;
    }
    const auto content = content_of(store, directory());
    rank_.content_digest = content.value_or("");
    if (content_ && content != content_) {
      rule(judged::kBitMismatch, "the checkpoint of step " + std::to_string(step.value) +
                                     " existed before, but its tensors " +
                                     (content ? "had different values" : "can no longer be read"));
    }
    rank_.saves.push_back({point_of(step, store), {}, {}, {}, false});
  }

  SavePoint point_of(Step step, Store& store) const {
    SavePoint point = before_ != nullptr ? *before_ : SavePoint{};
    point.step = step;
    if (before_ == nullptr) {
      point.modules = modules_;
      point.random = false;
      take_what_is_told(store, directory(), point);
    }
    point.life = number_;
    point.certain = true;
    point.damaged = false;
    return point;
  }

  const LifePlan& plan_;
  std::vector<sim::ModuleConfig> modules_;
  std::size_t number_;
  const Past& past_;
  const SavePoint* before_ = nullptr;   ///< earlier save of the step that the program commits
  std::optional<std::string> content_;  ///< digest of the tensors of `before_`; empty if unknown
  RankRecord rank_;
};

}  // namespace

LifeRecord run_foreign(const Scenario& scenario, std::size_t number, Lane& lane,
                       const LaneOptions& options, const Past& past) {
  ForeignLife life(scenario, number, lane.store(), past);
  OnDisk disk(lane);
  const CommandEnd end = run_command(*scenario.lives[number].command,
                                     disk.path() + "/" + kCheckpointRoot, options.executable);
  disk.take_back();
  life.judge_end(end);
  life.judge_checkpoint(lane.store());
  return std::move(life).record();
}

}  // namespace reprise::driver
