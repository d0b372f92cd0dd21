#pragma once
// Opens the files of a PosixStore.

#include <sys/stat.h>

#include <memory>
#include <string>

#include "reprise/store.hpp"

namespace reprise::posix {

/// Converts the result of stat() to an entry named `name`.
Entry entry_of(std::string name, const struct stat& status);
/// Opens a regular file for reading. Links in `path` are followed. A directory, device or pipe is
/// never opened.
std::unique_ptr<ReadFile> open_file(const std::string& path);
/// Creates or truncates the file. Throws if `path` is a link.
std::unique_ptr<WriteFile> create_file(const std::string& path);

}  // namespace reprise::posix
