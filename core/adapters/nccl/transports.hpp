#pragma once
// Reads from NCCL's log by what it sends data. NCCL tells it in no other way. Pure; does not use
// NCCL.

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// Returns the transports of the channels that a log of NCCL_DEBUG=INFO names, each once, in order:
///
///   node0:71:71 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM     gives "P2P/CUMEM"
inline std::vector<std::string> transports_in(std::string_view log) {
  constexpr std::string_view kVia = " via ";
  std::set<std::string> found;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    const std::size_t via = line.find(kVia);
    if (via == std::string_view::npos || line.find("NCCL INFO Channel") > via) continue;
    const std::string_view rest = line.substr(via + kVia.size());
    found.emplace(rest.substr(0, rest.find_first_of(" \r")));
  }
  return {found.begin(), found.end()};
}

}  // namespace reprise
