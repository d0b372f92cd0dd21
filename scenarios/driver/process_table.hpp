#pragma once
// The processes of this machine, as the system lists them.

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::driver {

/// Ids of living processes of that process group. Linux (/proc); empty elsewhere.
std::vector<std::int64_t> members_of(std::int64_t group);

/// Ids of living processes that were started with that word, this one excepted. Likewise.
std::vector<std::int64_t> started_with(const std::string& word);

}  // namespace reprise::driver
