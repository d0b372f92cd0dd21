#pragma once
// Runs independent jobs on a few threads.

#include <cstddef>
#include <functional>

namespace reprise::driver {

/// Calls `job` with 0 .. count - 1, in this order, with at most `at_a_time` calls at once. If a job
/// throws, no further jobs begin, and the first exception is rethrown when all threads have ended.
void run_jobs(std::size_t count, std::size_t at_a_time,
              const std::function<void(std::size_t)>& job);

}  // namespace reprise::driver
