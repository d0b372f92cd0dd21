#pragma once
// Runs a child process with a deadline.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace reprise::driver {

struct ProcessLimits {
  std::uint64_t deadline_s = 0;
  /// Called from time to time. Whenever it returns another number than before, the deadline starts
  /// again, up to `progress_s_max` seconds after the start. If empty, the deadline is fixed.
  std::function<std::uint64_t()> progress = {};
  std::uint64_t progress_s_max = 0;
  /// Called from time to time. Returns nothing while the process is still working. Once the work is
  /// done, returns how much longer the process may run.
  std::function<std::optional<std::chrono::seconds>()> grace = {};
};

struct ProcessEnd {
  bool timed_out = false;    ///< true if process and group were killed at the deadline
  bool progressing = false;  ///< true if there was progress within the time before the deadline
  bool cut_short = false;    ///< true if process and group were killed after the grace period
  int exit_code = 0;         ///< exit code, or 128 + signal if a signal ended the process
  /// True if other processes of the child's group outlived the child and were killed.
  bool left_some = false;
};

/// Runs `arguments` (the program is looked up in PATH) and appends the output to `log`. Throws IO
/// if the program can't be started.
ProcessEnd run_process(const std::vector<std::string>& arguments, const std::string& log,
                       const ProcessLimits& limits);

}  // namespace reprise::driver
