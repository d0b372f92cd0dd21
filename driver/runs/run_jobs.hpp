#pragma once
// Runs independent jobs on a few threads.

#include <cstddef>
#include <functional>
#include <string>

namespace reprise::driver {

/// Calls `job` with 0 .. count - 1, in this order, with at most `at_a_time` calls at once. If a job
/// throws, no further jobs begin, and the first exception is rethrown when all threads have ended.
void run_jobs(std::size_t count, std::size_t at_a_time,
              const std::function<void(std::size_t)>& job);

/// Calls `job` on this thread. If the program crashes in it (SIGSEGV, SIGBUS, SIGFPE, SIGILL),
/// writes `words` to standard error at once, whatever the heap looks like, and returns the signal.
/// The job's memory and locks are then lost, so the caller should do little more than report what
/// there is. If it has not ended within a minute, the program ends. Returns 0 if the job returned.
/// A handler that is there already, as a sanitizer's, stays: it says more.
int crash_of(const std::string& words, const std::function<void()>& job);

}  // namespace reprise::driver
