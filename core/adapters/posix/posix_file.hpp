#pragma once
// Files opened by a PosixStore.

#include <sys/stat.h>

#include <memory>
#include <string>

#include "reprise/store.hpp"

namespace reprise::posix {

/// Converts a stat result to an entry of that name.
Entry entry_of(std::string name, const struct stat& status);
/// Opens a regular file for reading; the system resolves `path`. Links are followed, but a
/// directory, device or pipe is never opened.
std::unique_ptr<ReadFile> open_file(const std::string& path);
/// Creates or truncates the file. Links are refused.
std::unique_ptr<WriteFile> create_file(const std::string& path);

}  // namespace reprise::posix
