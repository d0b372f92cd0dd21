#pragma once
// Damage that time and hardware do to files that nobody has open.

#include <cstdint>
#include <string>

#include "reprise/store.hpp"

namespace reprise::sim {

/// Flips one bit of a file, durably. `byte` and `bit` count modulo the file's length and 8. USAGE
/// for an empty file.
void flip_bit(Store& store, const std::string& path, std::uint64_t byte, unsigned bit = 0);
/// Removes the last `bytes` bytes of a file, durably; all of them if it has fewer.
void cut(Store& store, const std::string& path, std::uint64_t bytes);

}  // namespace reprise::sim
