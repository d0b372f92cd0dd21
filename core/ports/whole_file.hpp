#pragma once
// Reads and writes files of a store as a whole.

#include <cstdint>
#include <string>

#include "reprise/store.hpp"

namespace reprise {

/// All of an open file, which is `name` in messages.
Bytes read_whole(ReadFile& file, const std::string& name);
/// The whole file; LIMIT if it is larger than `size_max` bytes.
Bytes read_all(Store& store, const std::string& path, std::uint64_t size_max);
/// Creates or truncates; the content, not yet the name, would survive a power cut.
void write_durably(Store& store, const std::string& path, ByteSpan content);
/// Beside its place, synced, renamed over it, directory synced: old or new content, never a mix.
void write_atomically(Store& store, const std::string& path, ByteSpan content);

/// True if the two are known to be of different files. Some network file systems number a file anew
/// when they have forgotten it: with the same size and time it counts as the same one.
bool is_another_file(const Entry& one, const Entry& other);

}  // namespace reprise
