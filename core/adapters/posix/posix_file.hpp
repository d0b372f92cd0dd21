#pragma once
// Open files of a PosixStore.

#include <memory>
#include <string>

#include "core/ports/store.hpp"

namespace reprise::posix {

/// A regular file, opened for reading; `path` as the system takes it. Links, directories, devices
/// and pipes are refused.
std::unique_ptr<ReadFile> open_file(const std::string& path);
/// Creates or truncates. Links are refused.
std::unique_ptr<WriteFile> create_file(const std::string& path);

}  // namespace reprise::posix
