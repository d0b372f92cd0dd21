#include "driver/watch/life_ends.hpp"

#include <algorithm>

#include "core/base/print.hpp"

namespace reprise::driver {
namespace {

constexpr int kSignaled = 128;

class LifeEnd {
 public:
  LifeEnd(const WatchedLife& life, std::size_t number, MeantTo meant,
          const LifeRecording* uninterrupted)
      : life_(life), number_(number), meant_(meant), a_(uninterrupted) {}

  std::vector<WatchFinding> judge() {
    for (const auto& flaw : life_.recording.flaws) inconclusive("has a record to refuse: " + flaw);
    judge_outside();
    if (!findings_.empty()) return std::move(findings_);
    const bool trained = std::ranges::any_of(
        life_.recording.ranks, [](const auto& rank) { return !rank.second.held.empty(); });
    if (!trained) {
      judge_nothing();
    } else if (meant_ == MeantTo::kBeKilled) {
      judge_kill();
    } else {
      judge_returned();
    }
    if (findings_.empty()) judge_ranks();
    return std::move(findings_);
  }

 private:
  bool resumes() const { return number_ >= 2; }

  void add(Severity severity, FindingCode code, const std::string& text,
           std::set<std::int32_t> ranks = {}) {
    findings_.push_back({.severity = severity,
                         .code = code,
                         .where = "life " + life_.name,
                         .text = text,
                         .ranks = std::move(ranks),
                         .life = number_,
                         .log = life_.exit ? life_.exit->log : ""});
  }
  void inconclusive(const std::string& text) {
    add(Severity::kInconclusive, judged::kOracleVacuous, text);
  }

  /// Says how the command ended.
  std::string ended() const {
    if (!life_.exit) return "its record does not say how it ended";
    if (life_.exit->timed_out) return "it was ended after " + life_.exit->deadline;
    if (life_.exit->exit_code > kSignaled) {
      return "signal " + std::to_string(life_.exit->exit_code - kSignaled) + " ended it";
    }
    return "it ended with exit code " + std::to_string(life_.exit->exit_code);
  }

  /// What a life saves outside its working directory, all lives would share. Inside, the hook tells
  /// a path relative to the directory.
  void judge_outside() {
    for (const auto& [rank, recording] : life_.recording.ranks) {
      std::string outside = recording.outside;
      for (const auto& save : recording.saves) {
        if (life_.exit && save.path.starts_with('/')) outside = save.path;
      }
      if (outside.empty()) continue;
      inconclusive((recording.outside.empty() ? "saves to " : "wanted to save to ") + outside +
                   ", outside its working directory, where all lives would share it" +
                   (recording.outside.empty() ? "" : "; the save was not made") +
                   ". Let the command save to a relative path, or write {work} for the life's "
                   "directory");
      return;
    }
  }

  /// No rank trained. If a life that resumes failed in a load, that is its verdict.
  void judge_nothing() {
    if (resumes()) {
      for (const auto& [rank, recording] : life_.recording.ranks) {
        const bool failed = recording.end && recording.end->how != "returned";
        for (const auto& load : recording.loads) {
          if (load.error.empty()) continue;
          const std::string text = "could not load " + load.path + ": " + load.error;
          if (load.error.starts_with("FileNotFoundError") && !a_saved(load.path)) {
            return inconclusive(text + ". Is --resume-args what makes the command resume?");
          }
          return add(Severity::kFail, judged::kLostObject, text, {static_cast<std::int32_t>(rank)});
        }
        if (recording.loads.empty() || !failed) continue;
        add(Severity::kFail, judged::kLostObject,
            "loaded, and then ended before its first step: " + recording.end->error,
            {static_cast<std::int32_t>(rank)});
        return;
      }
    }
    if (life_.exit && life_.exit->timed_out) return judge_deadline();
    inconclusive("recorded no training step; " + ended() +
                 (number_ == 0 ? ". A process is watched if it imports torch and a module in "
                                 "training mode is called"
                  : resumes()  ? ". Is --resume-args what makes the command resume?"
                               : ""));
  }

  bool a_saved(const std::string& path) const {
    return a_ != nullptr && std::ranges::any_of(a_->ranks, [&](const auto& rank) {
             return std::ranges::any_of(rank.second.saves,
                                        [&](const Transfer& save) { return save.path == path; });
           });
  }

  /// What is silent for long may hang, or be slow.
  void judge_deadline() { add(Severity::kInconclusive, passed_on::kHang, ended()); }

  void judge_kill() {
    const bool killed = std::ranges::any_of(
        life_.recording.ranks, [](const auto& rank) { return rank.second.killed.has_value(); });
    if (killed) return;
    inconclusive("was not killed: it made " + steps() + ", and " + ended());
  }

  void judge_returned() {
    if (life_.exit && life_.exit->timed_out) return judge_deadline();
    const std::string late = " after " + steps() + "; ";
    for (const auto& [rank, recording] : life_.recording.ranks) {
      if (!recording.end || recording.end->how != "exception") continue;
      const std::string what = "ended" + late + recording.end->error;
      if (resumes()) {
        return add(Severity::kFail, judged::kTrajectoryDivergence, what,
                   {static_cast<std::int32_t>(rank)});
      }
      return inconclusive(what);
    }
    const int planned = planned_end(life_.recording);
    if (planned != 0 && (a_ == nullptr || planned_end(*a_) == planned)) return;
    if (life_.exit && life_.exit->exit_code != 0) {
      if (resumes()) {
        return add(Severity::kFail, judged::kTrajectoryDivergence, "stopped" + late + ended());
      }
      return inconclusive(ended() + " after " + steps());
    }
    for (const auto& [rank, recording] : life_.recording.ranks) {
      if (recording.end || life_.exit) continue;
      return inconclusive("rank " + std::to_string(rank) + " does not say that it ended");
    }
  }

  std::string steps() const {
    return counted(static_cast<std::uint64_t>(life_.recording.last_step()), "step");
  }

  void judge_ranks() {
    const auto& recorded = life_.recording.ranks;
    const bool other = resumes() && a_ != nullptr && tells_wholes(*a_);
    if (a_ != nullptr && !other && recorded.size() != a_->ranks.size()) {
      return inconclusive("has records of " + counted(recorded.size(), "rank") + ", life A of " +
                          std::to_string(a_->ranks.size()));
    }
    for (const auto& [rank, recording] : recorded) {
      const bool whole = recording.world <= static_cast<std::int64_t>(recorded.size());
      if (!whole) {
        return inconclusive("has records of " + counted(recorded.size(), "rank") + " of " +
                            std::to_string(recording.world));
      }
      if (a_ != nullptr && a_->ranks.contains(rank) &&
          recording.digest != a_->ranks.at(rank).digest) {
        return inconclusive("has digests by " + recording.digest + ", life A by " +
                            a_->ranks.at(rank).digest);
      }
      if (recording.held.empty() && meant_ == MeantTo::kEnd) {
        return inconclusive("rank " + std::to_string(rank) + " recorded no training step");
      }
    }
  }

  const WatchedLife& life_;
  std::size_t number_;
  MeantTo meant_;
  const LifeRecording* a_;
  std::vector<WatchFinding> findings_;
};

}  // namespace

int planned_end(const LifeRecording& life) {
  int code = 0;
  for (const auto& [rank, recording] : life.ranks) {
    if (!recording.end || recording.end->how != "exit") return 0;
    const int own = recording.end->error == "16" ? 16 : recording.end->error == "17" ? 17 : 0;
    if (own == 0 || (code != 0 && own != code)) return 0;
    code = own;
  }
  return code;
}

std::vector<WatchFinding> judge_end(const WatchedLife& life, std::size_t number, MeantTo meant,
                                    const LifeRecording* uninterrupted) {
  return LifeEnd(life, number, meant, uninterrupted).judge();
}

}  // namespace reprise::driver
