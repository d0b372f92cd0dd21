#pragma once
// Lists the processes of this machine.

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::driver {

/// Returns the ids of the living processes in process group `group`. Works on Linux (/proc);
/// returns nothing elsewhere.
std::vector<std::int64_t> members_of(std::int64_t group);

/// Returns the ids of other living processes whose command line contains this word. Works on Linux;
/// returns nothing elsewhere.
std::vector<std::int64_t> started_with(const std::string& word);

/// Kills the other living processes whose environment had exactly this entry, such as "NAME=value",
/// when they began, and waits until none is left. Those of other users are not seen. Works on Linux
/// (/proc); does nothing elsewhere.
void end_processes_with(const std::string& entry);

}  // namespace reprise::driver
