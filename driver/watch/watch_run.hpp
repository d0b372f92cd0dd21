#pragma once
// Runs the lives of a watched command: A to its end, B until it is killed, C to resume.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/watch/watch_judge.hpp"
#include "driver/watch/work_tree.hpp"

namespace reprise::driver {

/// When a life is killed, at or after a step.
enum class KillMoment : std::uint8_t {
  kBetween,      ///< after the step, once asynchronous saves that were begun are complete
  kSaveBegins,   ///< when a save was handed over and nothing is written
  kSaveWritten,  ///< when a save is complete
  kAsynchronous  ///< right after an asynchronous save began
};

struct WatchRequest {
  std::vector<std::string> command;
  /// The command of the lives that resume, if they have another layout. It is empty otherwise.
  std::vector<std::string> other_command;
  /// Appended for lives that resume, or put in place of a word {resume} of the command.
  std::vector<std::string> resume_words;
  /// Step after which each killed life is killed, counted in that life; if empty, chosen from the
  /// saves of life A.
  std::optional<std::int64_t> kill;
  KillMoment kill_moment = KillMoment::kBetween;
  std::size_t lives = 3;  ///< with life A
  bool every_step = false;
  std::vector<std::string> stand_ins;  ///< files of Python that are imported first
  std::string hook;                    ///< folder that is put first into PYTHONPATH
  std::string python;  ///< replaces the words python and python3 of the command; empty: does not
  WorkSource source;
  std::string folder;  ///< absolute; records and logs go there. It is empty or absent
  std::string work;    ///< absolute; the working directories are made in it. It exists
  bool keep_work = false;
  /// Life A is ended if it is silent for so many seconds: writes no record and no output.
  std::int64_t silence_s_max = 600;
};

/// What is shown while lives run.
struct WatchProgress {
  std::string life;
  std::size_t number = 0;
  std::size_t lives = 0;
  double seconds = 0;       ///< since the life began
  std::uint64_t bytes = 0;  ///< recorded and printed so far
};
using WatchListener = std::function<void(const WatchProgress&)>;

struct WatchOutcome {
  WatchedLives lives;
  WatchJudgement judgement;
  bool interrupted = false;
};

/// Runs the lives and judges them. Does not run a life whose verdict an earlier life decides. Runs
/// life A a second time if the verdict depends on whether its later steps repeat themselves. Ends
/// every process that it started on this machine. `interrupted` says whether a signal came.
WatchOutcome run_watch(const WatchRequest& request, const WatchListener& listener,
                       const std::function<bool()>& interrupted);

/// Returns the step after which to kill a life: one after the last save of a tensor that leaves two
/// steps, or one, to compare; for a kill in a save, the step of that save, which must not be the
/// first. Nothing if life A has no such save.
std::optional<std::int64_t> choose_kill(const LifeRecording& uninterrupted, KillMoment moment);

/// Reads the lives that run_watch() recorded in a folder, or that were recorded by hand in its
/// folders A, B, C and so on. Throws USAGE if there is no folder A.
WatchedLives read_lives(const std::string& folder);

}  // namespace reprise::driver
