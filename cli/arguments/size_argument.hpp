#pragma once
// Reads sizes in bytes, such as those of `--max-shard 5GB` and `--host-memory 512GiB`.

#include <cstdint>
#include <string>

namespace reprise::cli {

/// Reads a size such as "5GB" (10^9 bytes each), "5GiB" (2^30) or "1000". Throws USAGE, with the
/// name of the option, for any other word.
std::uint64_t size_argument(const std::string& option, const std::string& word);

}  // namespace reprise::cli
