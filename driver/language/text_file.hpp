#pragma once
// Reads a small text file whole.

#include <filesystem>
#include <string>

namespace reprise::driver {

/// Returns the text of the file; empty if there is no file or it can't be read, which the caller's
/// checks report.
std::string text_of(const std::filesystem::path& file);
/// Returns the last 400 characters, after "..." if there are more, for messages that quote a log.
std::string tail_of(const std::filesystem::path& file);

}  // namespace reprise::driver
