#pragma once
// Damages stored files that no process has open, as failing hardware does.

#include <cstdint>
#include <string>

#include "reprise/store.hpp"

namespace reprise::sim {

/// Flips one bit of a file, durably: bit `bit` % 8 of byte `byte` % (length of the file). Throws
/// USAGE for an empty file.
void flip_bit(Store& store, const std::string& path, std::uint64_t byte, unsigned bit = 0);
/// Replaces the bytes from `offset` on, durably. Throws USAGE if the file ends before the last.
void overwrite(Store& store, const std::string& path, std::uint64_t offset, ByteSpan bytes);
/// Removes the last `bytes` bytes of a file, durably; empties the file if it has fewer bytes.
void cut(Store& store, const std::string& path, std::uint64_t bytes);

}  // namespace reprise::sim
