#pragma once
// Writes words for a shell, for command lines that people paste.

#include <string>
#include <string_view>

namespace reprise {

/// Returns the word as a shell reads it: as it is, or in single quotes if the shell would take some
/// character of it for something else. A word with characters that can't be printed is written as
/// $'...', which bash and zsh read, with escapes such as \x1b, so the result is always one
/// printable line.
std::string shell_word(std::string_view word);

}  // namespace reprise
