#pragma once
// Writes words for a shell, for command lines that people paste.

#include <string>
#include <string_view>

namespace reprise {

/// Returns the word as a shell reads it: as it is, or in single quotes if the shell would take some
/// character of it for something else.
std::string shell_word(std::string_view word);

}  // namespace reprise
