#pragma once
// Survives a crash of this program for as long as it takes to say what it was doing.

#include <functional>
#include <string>

namespace reprise::sim {

/// Calls `job` on this thread. If the program crashes in it (SIGSEGV, SIGBUS, SIGFPE, SIGILL),
/// writes `words` to standard error at once, whatever the heap looks like, and returns the signal.
/// The job's memory and locks are then lost, so the caller should do little more than report what
/// there is. If it has not ended within a minute, the program ends. Returns 0 if the job returned.
/// A handler that is there already, as a sanitizer's, stays: it says more.
int crash_of(const std::string& words, const std::function<void()>& job);

}  // namespace reprise::sim
