#pragma once
// Reads and writes whole files of a store.

#include <cstdint>
#include <string>

#include "reprise/store.hpp"

namespace reprise {

/// Reads all of an open file; messages call it `name`.
Bytes read_whole(ReadFile& file, const std::string& name);
/// Reads the whole file; LIMIT if it is larger than `size_max` bytes.
Bytes read_all(Store& store, const std::string& path, std::uint64_t size_max);
/// Creates or truncates the file; its content, but not yet its name, would survive a power cut.
void write_durably(Store& store, const std::string& path, ByteSpan content);
/// Writes a side file, syncs, renames it over `path`, syncs the directory: old or new, never mixed.
void write_atomically(Store& store, const std::string& path, ByteSpan content);

/// True if both entries are known to be different files. Some network file systems renumber a file
/// they have forgotten: with equal size and time it counts as the same.
bool is_another_file(const Entry& one, const Entry& other);

}  // namespace reprise
