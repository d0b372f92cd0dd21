#pragma once
// Writes one event of the simulated lane as a line of text, so that two runs can be compared line
// by line: they have the same event hash if and only if their lines are the same.

#include <cstddef>
#include <string>

#include "sim/fibers/event_log.hpp"

namespace reprise::driver {

/// Returns a line such as
///
///   faults/crash[at=commit] life 0 rank 1 write 'a/__1_0.distcp' 0 5120 0x6fb1b5e1a4d0c2f7
///
/// Its numbers are those of the event: offsets, sizes, positions of calls, and hashes of content.
std::string event_line(const std::string& scenario, std::size_t life, const sim::LoggedEvent& call);

}  // namespace reprise::driver
