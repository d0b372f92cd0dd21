#include "driver/witness/life_end_judge.hpp"

#include <algorithm>
#include <sstream>

namespace reprise::driver {
namespace {

class LifeEndJudge : judged::Finder {
 public:
  LifeEndJudge(std::size_t number, const LifeEvidence& life, Findings& findings)
      : Finder(findings, {.text = life_name(number) + ": ", .life = number, .phase = "end"}),
        number_(number),
        life_(life) {}

  void judge_start() {
    for (const auto& flaw : life_.unread) {
      Finding& finding = find(flaw.code, flaw.text);
      if (flaw.code == judged::kOracleVacuous) finding.severity = Severity::kInconclusive;
      finding.phase = "start";
    }
    const auto world = static_cast<std::int64_t>(life_.ends.size());
    for (std::size_t i = 0; i < life_.ranks.size(); ++i) {
      const RankWitness& rank = life_.ranks[i];
      if (!started(rank)) continue;
      const bool same = rank.rank == static_cast<std::int64_t>(i) && rank.world == world &&
                        rank.layout == life_.plan.layout &&
                        rank.life == static_cast<std::int64_t>(number_);
      if (same) continue;
      Finding& finding = find(Code::kLayoutMismatch,
                              rank.file + " belongs to another life, rank, world or layout");
      finding.rank = rank_numbered(static_cast<std::int64_t>(i));
      finding.phase = "start";
    }
  }

  void judge_end() {
    if (life_.plan.rerun && !fault_came(life_)) {
      doubt("the rerun fault of step " + std::to_string(life_.plan.rerun->iteration) +
            " never happened: no rank reports the phase " + std::string(kRerunFault));
    }
    if (life_.plan.kill) {
      if (kill_fired(life_)) return;
      const auto& kill = *life_.plan.kill;
      return void(doubt("the kill of rank " + std::to_string(kill.rank) + " in " + kill.phase +
                        " never happened" + first_failure()));
    }
    for (std::size_t rank = 0; rank < life_.ends.size(); ++rank) judge_end_of(rank);
  }

 private:
  /// True if the rank's witness has its first line.
  static bool started(const RankWitness& rank) {
    return rank.world != 0 || !rank.states.empty() || !rank.steps.empty();
  }

  std::string first_failure() const {
    for (std::size_t rank = 0; rank < life_.ends.size(); ++rank) {
      const ProgramEnd& end = life_.ends[rank];
      if (end.exit_code == 0 || end.cut_short) continue;
      return "; rank " + std::to_string(rank) + " ended with " + std::to_string(end.exit_code) +
             ": " + end.log;
    }
    return "";
  }

  /// Returns the line of Python's output that says that a module can't be imported; empty if there
  /// is none.
  static std::string import_error(const std::string& log) {
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("ModuleNotFoundError:") || line.starts_with("ImportError:")) return line;
    }
    return "";
  }

  void judge_end_of(std::size_t rank) {
    const ProgramEnd& end = life_.ends[rank];
    const std::string who = "rank " + std::to_string(rank);
    if (end.cut_short) return;  // the cause is reported for the rank that failed first
    if (end.timed_out) return judge_deadline(rank);
    if (end.exit_code != life_.plan.exit) {
      const bool silent = rank < life_.ranks.size() && !started(life_.ranks[rank]);
      const std::string missing = import_error(end.log);
      if (!missing.empty()) return void(doubt(who + " can't run here: " + missing));
      if (silent && number_ == 0 && end.exit_code != 0) {
        return void(doubt(who + " ended with " + std::to_string(end.exit_code) +
                          " before its witness began: " + end.log));
      }
      find(judged::kVerdictDisagreement,
           who + " should have ended with " + std::to_string(life_.plan.exit) + " but ended with " +
               std::to_string(end.exit_code) +
               (end.left_some ? ", and left processes behind" : "") + ": " + end.log)
          .rank = rank_numbered(static_cast<std::int64_t>(rank));
    } else if (rank < life_.ranks.size()) {
      const RankWitness& witness = life_.ranks[rank];
      const bool told = life_.plan.exit == 0 || witness.exit == life_.plan.exit;
      if (witness.done && told && !witness.torn) return;
      if (!started(witness)) return;  // its missing witness is reported
      find(judged::kVerdictDisagreement, who + " ended with " + std::to_string(end.exit_code) +
                                             " but its witness does not say so")
          .rank = rank_numbered(static_cast<std::int64_t>(rank));
    }
  }

  void judge_deadline(std::size_t rank) {
    const ProgramEnd& end = life_.ends[rank];
    std::string text = "rank " + std::to_string(rank) + " did not finish within " +
                       std::to_string(end.seconds) + " s (" + end.limit + ")";
    if (rank < life_.ranks.size()) text += reached(life_.ranks[rank]);
    if (end.progressing)
      text += " but was still making progress, so it is slow rather than hanging";
    if (!end.log.empty()) text += ": " + end.log;
    // Nobody knows whether a program that reported nothing hangs or only starts slowly.
    const bool silent = std::none_of(life_.ranks.begin(), life_.ranks.end(), started);
    Finding& finding = find(passed_on::kHang, text);
    finding.rank = rank_numbered(static_cast<std::int64_t>(rank));
    if (end.progressing || silent) finding.severity = Severity::kInconclusive;
    finding.at_deadline = true;
    if (rank < life_.ranks.size() && !life_.ranks[rank].steps.empty()) {
      finding.step = life_.ranks[rank].steps.back().step;
    }
  }

  static std::string reached(const RankWitness& rank) {
    if (!started(rank)) return "; its witness had not begun";
    if (rank.done) return "; its witness says that it was done";
    if (!rank.phases.empty() && rank.phases.back().begins) {
      return "; it was in the phase " + rank.phases.back().name;
    }
    if (rank.steps.empty()) return "; it had reported no step";
    return "; it had reported step " + std::to_string(rank.steps.back().step);
  }

  std::size_t number_;
  const LifeEvidence& life_;
};

}  // namespace

void judge_life_start(std::size_t number, const LifeEvidence& life, Findings& findings) {
  LifeEndJudge(number, life, findings).judge_start();
}

void judge_life_end(std::size_t number, const LifeEvidence& life, Findings& findings) {
  LifeEndJudge(number, life, findings).judge_end();
}

}  // namespace reprise::driver
