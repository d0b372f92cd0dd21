#pragma once
// Runs independent pieces of work on a few threads.

#include <cstddef>
#include <functional>

namespace reprise::driver {

/// Calls `job` with 0 .. count - 1, in this order, at most `at_a_time` at once. Rethrows the first
/// exception when all threads have ended; jobs that had not begun by then are skipped.
void run_jobs(std::size_t count, std::size_t at_a_time,
              const std::function<void(std::size_t)>& job);

}  // namespace reprise::driver
