#pragma once
// Reads and writes whole files of a store.

#include <cstdint>
#include <string>

#include "reprise/store.hpp"

namespace reprise {

/// Reads all of an open file. Error messages use `name` as the name of the file.
Bytes read_whole(ReadFile& file, const std::string& name);
/// Reads the whole file. Throws LIMIT if it is larger than `size_max` bytes.
Bytes read_all(Store& store, const std::string& path, std::uint64_t size_max);
/// Creates or truncates the file and writes `content`. After the call, the content would survive a
/// power cut, but the name might not.
void write_durably(Store& store, const std::string& path, ByteSpan content);
/// Writes a side file, syncs it, renames it over `path`, and syncs the directory. A reader finds
/// the old or the new content, never a mixture.
void write_atomically(Store& store, const std::string& path, ByteSpan content);

/// True if the two entries are known to be different files. A new file number alone proves nothing,
/// because some network file systems later give a new number to the same file. Entries with equal
/// size and time are therefore treated as the same file.
bool is_another_file(const Entry& one, const Entry& other);

}  // namespace reprise
