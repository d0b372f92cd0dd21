#pragma once
// A child process with a deadline.

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::driver {

struct ProcessEnd {
  bool timed_out = false;  ///< it was killed, with its whole process group
  int exit_code = 0;       ///< 128 + signal if a signal ended it
  /// Others of its process group outlived it, and were killed.
  bool left_some = false;
};

/// Runs `arguments` (the program is looked up in PATH) with its output appended to `log`. IO if it
/// can't be started.
ProcessEnd run_process(const std::vector<std::string>& arguments, const std::string& log,
                       std::uint64_t deadline_s);

}  // namespace reprise::driver
