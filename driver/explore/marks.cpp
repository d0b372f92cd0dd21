#include "driver/explore/marks.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "core/checkpoint/set_aside.hpp"
#include "core/checkpoint/stored_tracker.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"
#include "core/save/commit_protocol.hpp"
#include "core/save/phases.hpp"
#include "core/save/retention.hpp"
#include "driver/judges/life_end.hpp"
#include "driver/record/history.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using sim::FaultKind;

constexpr std::array kFaultKinds = {
    FaultKind::kCrash,      FaultKind::kWriteError,         FaultKind::kNoSpace,
    FaultKind::kSyncError,  FaultKind::kDirectorySyncError, FaultKind::kTornWrite,
    FaultKind::kShortWrite, FaultKind::kFlipWrite,          FaultKind::kLostSync,
    FaultKind::kLostRename, FaultKind::kFleetingRename,     FaultKind::kReadError,
    FaultKind::kFlipRead};
/// Codes with which the ranks may refuse a load of a timeline.
constexpr std::array kRefusals = {Code::kIo, Code::kNotFound, Code::kTornFile,
                                  Code::kTrackerDangling, Code::kChecksum};
/// Codes with which a save of a timeline may fail.
constexpr std::array kSaveFailures = {Code::kIo, Code::kNoSpace, Code::kPeerFailed};
constexpr std::array<std::string_view, 4> kRelations = {"alike", "finer", "coarser", "across"};

std::string refused_mark(FindingCode code) { return "refused: " + std::string(name_of(code)); }
std::string save_failed_mark(FindingCode code) {
  return "save failed: " + std::string(name_of(code));
}
std::string fired_mark(FaultKind kind) { return "fired: " + std::string(name_of(kind)); }
std::string struck_mark(std::string_view place) { return "struck: " + std::string(place); }
std::string boxes_mark(std::string_view axis, std::string_view relation) {
  return "boxes of " + std::string(axis) + ": " + std::string(relation);
}

constexpr std::array<std::string_view, 23> kOthers = {
    "load: continued",
    "load: fell back within the life before",
    "load: fell back to an earlier life",
    "load: refused",
    "load: took the checkpoint of a save that was cut short",
    "life: cut short",
    "save: beside training",
    "save: two in flight",
    "save: stood after a failed one",
    "plan: made for a save",
    "plan: reused",
    "plan: made again after a failed save",
    "plan: other layout than the checkpoint's",
    "rerun: left with a fault checkpoint",
    "rerun: another device decided",
    "rerun: found a broken device",
    "store: unfinished save left",
    "store: replaced checkpoint left",
    "store: unfinished removal left",
    "store: newer checkpoint than the tracker's left",
    "store: checkpoint removed",
    "writers: one rank",
    "writers: several ranks",
};
constexpr std::string_view kWriterMoved = "writers: another one than in the life before";

std::vector<std::string> registered() {
  std::vector<std::string> marks(kOthers.begin(), kOthers.end());
  marks.emplace_back(kWriterMoved);
  for (const auto kind : kFaultKinds) marks.push_back(fired_mark(kind));
  for (const auto code : kRefusals) marks.push_back(refused_mark(code));
  for (const auto code : kSaveFailures) marks.push_back(save_failed_mark(code));
  for (const auto phase : kSavePhases) marks.push_back(struck_mark(phase));
  for (const auto phase : kLoadPhases) marks.push_back(struck_mark(phase));
  for (const auto step : kCommitSteps) {
    marks.push_back(struck_mark(std::string(phase::kCommit) + "/" + std::string(step)));
  }
  for (const auto axis : {"tp", "dp"}) {
    for (const auto relation : kRelations) marks.push_back(boxes_mark(axis, relation));
  }
  std::sort(marks.begin(), marks.end());
  return marks;
}

/// Returns how boxes of a dimension that `own` ranks cut lie to boxes that `stored` ranks cut.
std::string_view relation_of(std::int32_t stored, std::int32_t own) {
  if (stored == own) return "alike";
  if (own % stored == 0) return "finer";
  return stored % own == 0 ? "coarser" : "across";
}

/// Returns the place of the text that ends at the first of `ends`.
std::string before_first(const std::string& text, std::string_view ends) {
  return text.substr(0, text.find_first_of(ends));
}

/// The first rank that writes each item of a save: its main copy.
std::map<std::string, std::int32_t> writers_of(const LifeRecord& life) {
  std::map<std::string, std::int32_t> writers;
  for (const auto& rank : life.ranks) {
    if (rank.audits.empty()) continue;
    for (const auto& item : rank.audits.front().items) {
      if (item.replica == 0) writers.emplace(item.key, rank.audits.front().rank.value);
    }
  }
  return writers;
}

class Marker {
 public:
  explicit Marker(const MarkEvidence& evidence)
      : at_(evidence), life_(evidence.lives[evidence.life]) {}

  std::vector<std::string> take() {
    mark_end();
    mark_load();
    mark_saves();
    mark_faults();
    mark_rerun();
    mark_store();
    mark_writers();
    return {reached_.begin(), reached_.end()};
  }

 private:
  void reach(std::string mark) {
    const auto& all = all_marks();
    if (std::binary_search(all.begin(), all.end(), mark)) reached_.insert(std::move(mark));
  }

  void mark_end() {
    const LifeEnd end = end_of(at_.scenario, at_.life, life_);
    if (end.outcome == reports::LifeOutcome::kCutShort) reach("life: cut short");
    if (end.outcome != reports::LifeOutcome::kRefused) return;
    reach("load: refused");
    if (end.code) reach(refused_mark(*end.code));
  }

  void mark_load() {
    const auto loaded =
        std::find_if(life_.ranks.begin(), life_.ranks.end(),
                     [](const RankRecord& rank) { return rank.outcome && !rank.loads.empty(); });
    if (at_.life == 0 || loaded == life_.ranks.end()) return;
    const SavePoint* save = newest_save_of(loaded->loads.front().step);
    if (save == nullptr) return;
    if (*loaded->outcome == Outcome::kContinued) reach("load: continued");
    if (!save->certain) reach("load: took the checkpoint of a save that was cut short");
    if (*loaded->outcome == Outcome::kFellBack) {
      reach(save->life + 1 == at_.life ? "load: fell back within the life before"
                                       : "load: fell back to an earlier life");
    }
    mark_boxes(at_.scenario.lives[save->life].layout);
  }

  /// Returns the last save of that step by an earlier life.
  const SavePoint* newest_save_of(std::int64_t step) const {
    const SavePoint* found = nullptr;
    for (const auto& save : at_.past.saves) {
      if (save.step.value == step && save.life < at_.life) found = &save;
    }
    return found;
  }

  void mark_boxes(const sim::Layout& stored) {
    const sim::Layout& own = at_.scenario.lives[at_.life].layout;
    reach(boxes_mark("tp", relation_of(stored.tp, own.tp)));
    reach(boxes_mark("dp", relation_of(stored.dp, own.dp)));
    if (!(stored == own)) reach("plan: other layout than the checkpoint's");
  }

  void mark_saves() {
    for (const auto& rank : life_.ranks) {
      bool failed = false;
      for (const auto& save : rank.saves) {
        reach(save.reused ? "plan: reused" : "plan: made for a save");
        if (save.code) reach(save_failed_mark(*save.code));
        if (save.point.beside > 0) reach("save: beside training");
        if (failed && save.point.certain) reach("save: stood after a failed one");
        if (failed && !save.reused) reach("plan: made again after a failed save");
        failed = failed || save.code.has_value();
      }
      const auto open = std::count_if(rank.saves.begin(), rank.saves.end(), [](const auto& save) {
        return !save.point.certain && !save.code;
      });
      if (open > 1) reach("save: two in flight");
    }
  }

  void mark_faults() {
    for (const auto& rank : life_.ranks) {
      for (const auto& fault : rank.faults) {
        if (!fault.fired) continue;
        reach(fired_mark(fault.spec.kind));
        const std::string place = before_first(site_of(fault), " ");
        reach(struck_mark(place));
        reach(struck_mark(before_first(place, "/")));
      }
    }
  }

  void mark_rerun() {
    for (const auto& rank : life_.ranks) {
      if (rank.exit_code == 16) reach("rerun: left with a fault checkpoint");
      if (rank.exit_code == 17) reach("rerun: another device decided");
      if (rank.diagnosis == sim::RerunDiagnosis::kPersistentError) {
        reach("rerun: found a broken device");
      }
    }
  }

  void mark_store() {
    const StoreView& now = at_.stores[at_.life];
    if (now.saving) reach("store: unfinished save left");
    if (now.replaced) reach("store: replaced checkpoint left");
    if (now.removing) reach("store: unfinished removal left");
    if (now.tracked && !now.steps.empty() && *now.steps.rbegin() > *now.tracked) {
      reach("store: newer checkpoint than the tracker's left");
    }
    if (at_.life == 0) return;
    for (const auto step : at_.stores[at_.life - 1].steps) {
      if (!now.steps.contains(step)) reach("store: checkpoint removed");
    }
  }

  void mark_writers() {
    const auto writers = writers_of(life_);
    if (writers.empty()) return;
    const std::int32_t first = writers.begin()->second;
    const bool one = std::all_of(writers.begin(), writers.end(),
                                 [first](const auto& writer) { return writer.second == first; });
    reach(one ? "writers: one rank" : "writers: several ranks");
    if (at_.life == 0) return;
    for (const auto& [key, rank] : writers_of(at_.lives[at_.life - 1])) {
      const auto now = writers.find(key);
      if (now != writers.end() && now->second != rank) reach(std::string(kWriterMoved));
    }
  }

  const MarkEvidence& at_;
  const LifeRecord& life_;
  std::set<std::string> reached_;
};

/// True if the directory holds an old checkpoint that the holder of the token moved away. A store
/// that exchanges names leaves it under the name of the unfinished save.
bool is_old(Store& store, const std::string& name, const std::string& token) {
  const std::string directory = join_path(kCheckpointRoot, name);
  return store.stat(join_path(directory, old_mark_of(token))).has_value();
}

}  // namespace

const std::vector<std::string>& all_marks() {
  static const std::vector<std::string> marks = registered();
  return marks;
}

StoreView view_of(Store& store) {
  StoreView view;
  if (!store.stat(kCheckpointRoot)) return view;
  for (const Entry& entry : store.list(kCheckpointRoot)) {
    if (const auto aside = aside_name(entry.name)) {
      const bool old = is_old(store, entry.name, aside->token) || aside->suffix == kReplacedSuffix;
      view.saving = view.saving || (aside->suffix == kSavingSuffix && !old);
      view.replaced = view.replaced || (aside->suffix != kRemovingSuffix && old);
      view.removing = view.removing || aside->suffix == kRemovingSuffix;
    } else if (const auto tracker = tracker_of_directory(entry.name); tracker && tracker->step) {
      view.steps.insert(tracker->step->value);
    }
  }
  if (const auto step = tracked_step(store, kCheckpointRoot)) view.tracked = step->value;
  return view;
}

std::vector<std::string> marks_of(const MarkEvidence& evidence) { return Marker(evidence).take(); }

std::string site_of(const sim::FaultState& fault) {
  const sim::FaultPlace& place = fault.spec.place;
  const std::string moment = " " + std::string(name_of(place.moment));
  if (place.moment != sim::FaultMoment::kDuring) {
    return place.phase + (place.step.empty() ? "" : "/" + place.step) + moment;
  }
  const auto colon = fault.where.find(": ");
  return (colon == std::string::npos ? "between" : fault.where.substr(0, colon)) + moment;
}

}  // namespace reprise::driver
