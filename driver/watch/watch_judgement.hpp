#pragma once
// The lives of a watched command, and what a judge finds in their records.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/watch/life_record.hpp"
#include "properties/finding.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

using judged::Severity;

/// How the command of a life ended, as the driver saw it.
struct CommandExit {
  int exit_code = 0;       ///< or 128 + signal
  bool timed_out = false;  ///< ended at its deadline
  std::string deadline;    ///< such as "60 s without a record or output (4 times that of life A)"
  std::string log;         ///< the last lines of its output
};

struct WatchedLife {
  std::string name;  ///< A, B, C, ...
  LifeRecording recording;
  std::optional<CommandExit> exit;  ///< empty if the life was made without the driver
};

/// A is the life that nothing interrupts. In `resumed`, the first life is killed and each later one
/// resumes; all but the last are killed.
struct WatchedLives {
  WatchedLife uninterrupted;
  std::vector<WatchedLife> resumed;
  /// A second uninterrupted life; empty if there is none. It tells what differs from run to run
  /// after the step at which the first resumed life was killed.
  std::optional<WatchedLife> repeat;
  /// Step after which the first life is to be killed; empty if it is not known.
  std::optional<std::int64_t> kill;
  /// True if the kill is to come while an asynchronous save is on its way.
  bool kill_asynchronous = false;
  /// Words that make the command resume, as the user said; empty if it resumes by itself.
  std::vector<std::string> resume_words = {};
};

/// Something that a judge found, on all ranks that have it.
struct WatchFinding {
  Severity severity = Severity::kFail;
  FindingCode code = judged::kLostObject;
  std::string where;  ///< what is wrong: names, or a step such as "step 6"; may be empty
  std::string text;   ///< such as "as in a new process"
  std::set<std::int32_t> ranks = {};
  std::vector<std::string> names = {};  ///< the single names, in natural order
  std::size_t life = 0;                 ///< index among all lives: 0 is A, 1 is B
  std::optional<std::int64_t> step = {};
  std::string expected = {};  ///< the first name's value in life A
  std::string found = {};
  std::string log = {};  ///< the last lines of the output of the life's command
};

/// What was compared, as kinds of things that every rank has.
struct JudgedCounts {
  std::set<std::string> tensors;
  std::set<std::string> values;
  std::set<std::string> random_states;
  std::set<std::int64_t> data_steps;
  std::set<std::int64_t> loss_steps;
};

struct WatchJudgement {
  reports::Verdict verdict = reports::Verdict::kInconclusive;
  /// The finding that decides comes first.
  std::vector<WatchFinding> findings = {};
  std::optional<std::int64_t> continues_from = {};  ///< step of life A
  std::optional<std::int64_t> newest_save = {};     ///< before the kill, complete
  JudgedCounts counts = {};
  std::map<std::int32_t, reports::RankResult> ranks = {};
  std::map<std::string, std::string> not_judged = {};  ///< reason by name
  /// True if a second uninterrupted life could turn an inconclusive verdict into another.
  bool wants_repeat = false;
};

}  // namespace reprise::driver
