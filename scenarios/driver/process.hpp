#pragma once
// A child process with a deadline.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace reprise::driver {

struct ProcessLimits {
  std::uint64_t deadline_s = 0;
  /// Asked now and then: how much longer it may run, once it has nothing left to do.
  std::function<std::optional<std::chrono::seconds>()> grace = {};
};

struct ProcessEnd {
  bool timed_out = false;  ///< it was killed at its deadline, with its whole process group
  bool cut_short = false;  ///< it was killed when its grace was over, likewise
  int exit_code = 0;       ///< 128 + signal if a signal ended it
  /// Others of its process group outlived it, and were killed.
  bool left_some = false;
};

/// Runs `arguments` (the program is looked up in PATH) with its output appended to `log`. IO if it
/// can't be started.
ProcessEnd run_process(const std::vector<std::string>& arguments, const std::string& log,
                       const ProcessLimits& limits);

}  // namespace reprise::driver
