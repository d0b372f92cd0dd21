#pragma once
// Reads a small text file as a whole.

#include <filesystem>
#include <string>

namespace reprise::driver {

/// Returns the text of the file; empty if it is missing, can't be read, or is no regular file. The
/// caller's checks then report the problem.
std::string text_of(const std::filesystem::path& file);
/// Returns the end of a log file, for messages that quote it: at most the last 400 characters. If
/// the file is longer, "..." comes before them.
std::string tail_of(const std::filesystem::path& file);

}  // namespace reprise::driver
