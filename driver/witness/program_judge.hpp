#pragma once
// Judges the lives of a trainer by the witness files of its ranks and by the content of the
// checkpoints. Pure.

#include <map>
#include <string>
#include <vector>

#include "driver/trainers/program_plan.hpp"
#include "driver/witness/stored_root.hpp"
#include "driver/witness/whole_state.hpp"

namespace reprise::driver {

/// How a rank's process ended.
struct ProgramEnd {
  int exit_code = 0;  ///< 128 + signal if a signal ended it
  bool timed_out = false;
  bool cut_short = false;    ///< true if the driver ended it because another rank had failed
  bool left_some = false;    ///< true if it left processes behind, which the driver ended
  bool progressing = false;  ///< true if it still reported something when it timed out
  std::int64_t seconds = 0;  ///< its deadline, if it timed out
  std::string limit = "trainer.yaml: seconds";  ///< what set that deadline, in words
  std::string log;                              ///< the end of the program's output
};

/// The evidence that one life left: how its ranks ended, what their witness files report, and the
/// stored checkpoints.
struct LifeEvidence {
  ProgramLife plan;
  std::vector<ProgramEnd> ends;    ///< by rank
  std::vector<RankWitness> ranks;  ///< by rank
  Findings unread;                 ///< reasons why witness files could not be read
  std::vector<StoredCheckpoint> before;
  std::vector<StoredCheckpoint> after;
  std::string complaint = {};  ///< how the end of a command differs from its plan
  bool stored_known = true;    ///< false if the checkpoints after the life are unknown
  /// The longest time in which no rank reported anything, in seconds; 0 for a command.
  double longest_silence = 0;
};

/// Other runs that the lives of a scenario are compared with. A run that is null or absent is not
/// used.
struct ControlRuns {
  const LifeEvidence* uninterrupted = nullptr;
  /// Second runs of lives, by the index of the life.
  std::map<std::size_t, const LifeEvidence*> again;
};

/// The phase in which a trainer's fault strikes.
inline constexpr const char* kRerunFault = "rerun.fault";

/// True if this life, or a life before it, has a layout that differs from the first life's.
bool after_change(const ProgramPlan& plan, std::size_t life);
/// True if the life ended as planned, so that the next may begin.
bool ended_as_planned(const LifeEvidence& life);
/// True if a process of the life was ended at its deadline.
bool timed_out(const LifeEvidence& life);
/// Returns why a run that did not end as planned ended: the deadline, or the last words of the
/// first process that failed.
std::string why_ended(const LifeEvidence& life);
/// True if the planned rerun fault struck the planned rank. Call it only if a rerun fault is
/// planned.
bool fault_came(const LifeEvidence& life);
/// True if the planned kill ended the planned rank in the planned phase.
bool kill_fired(const LifeEvidence& life);
/// Returns the run that this life is compared with; null if it is compared with none.
const LifeEvidence* reference_of(const ProgramPlan& plan, std::size_t life,
                                 const ControlRuns& controls);

/// Returns all findings, ordered by life. Within a life, causes come before their effects.
Findings judge_program(const ProgramPlan& plan, const std::vector<LifeEvidence>& lives,
                       const ControlRuns& controls);

/// Adds, as the first, an inconclusive finding that a control run failed. `called` names the run.
void judge_control(const LifeEvidence& failed, const std::string& called, Findings& findings);

/// Returns the first finding that is a failure; null if there is none.
const Finding* first_failure(const Findings& findings);

/// Compares the last of `lives` with `cold`, a run of that life without its load. Adds an
/// inconclusive finding if `cold` trains and ends as the life did, or if the judges find no failure
/// when `cold` replaces the life. Also adds one if `cold` can't be compared, because it failed, has
/// another layout, or does not report the state that it has instead of the loaded one.
void judge_cold_life(const ProgramPlan& plan, std::vector<LifeEvidence> lives,
                     const LifeEvidence& cold, const ControlRuns& controls, Findings& findings);

}  // namespace reprise::driver
