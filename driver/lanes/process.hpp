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
  /// Polled from time to time: returns how much longer the process may run, once its work is done.
  std::function<std::optional<std::chrono::seconds>()> grace = {};
};

struct ProcessEnd {
  bool timed_out = false;  ///< true if it was killed at its deadline, with its whole process group
  bool cut_short = false;  ///< true if it was killed at the end of its grace, likewise
  int exit_code = 0;       ///< 128 + signal if a signal ended it
  /// True if other processes of its group outlived it and were killed.
  bool left_some = false;
};

/// Runs `arguments` (the program is looked up in PATH) and appends the output to `log`. IO if the
/// program can't be started.
ProcessEnd run_process(const std::vector<std::string>& arguments, const std::string& log,
                       const ProcessLimits& limits);

}  // namespace reprise::driver
