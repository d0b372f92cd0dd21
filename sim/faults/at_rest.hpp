#pragma once
// What time and hardware do to files that nobody has open.

#include <cstdint>
#include <string>

#include "reprise/store.hpp"

namespace reprise::sim {

/// One bit of a file is another one from now on, durably. `byte` and `bit` count modulo the file's
/// length and 8. USAGE for an empty file.
void flip_bit(Store& store, const std::string& path, std::uint64_t byte, unsigned bit = 0);
/// The last `bytes` bytes of a file are gone, durably; all of them if there are fewer.
void cut(Store& store, const std::string& path, std::uint64_t bytes);

}  // namespace reprise::sim
