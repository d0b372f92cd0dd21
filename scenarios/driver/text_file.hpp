#pragma once
// A small text file, whole.

#include <filesystem>
#include <string>

namespace reprise::driver {

/// Empty where there is none or it can't be read: what is asked of the text tells.
std::string text_of(const std::filesystem::path& file);
/// Its last 400 characters, "..." before them if there are more: what a message shows of a log.
std::string tail_of(const std::filesystem::path& file);

}  // namespace reprise::driver
