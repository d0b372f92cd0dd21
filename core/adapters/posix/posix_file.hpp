#pragma once
// Open files of a PosixStore.

#include <sys/stat.h>

#include <memory>
#include <string>

#include "reprise/store.hpp"

namespace reprise::posix {

/// Returns what the status says as an entry of that name.
Entry entry_of(std::string name, const struct stat& status);
/// Opens a regular file for reading; `path` as the system takes it. Links are followed. What they
/// lead to is not opened if it is a directory, a device or a pipe.
std::unique_ptr<ReadFile> open_file(const std::string& path);
/// Creates or truncates. Links are refused.
std::unique_ptr<WriteFile> create_file(const std::string& path);

}  // namespace reprise::posix
