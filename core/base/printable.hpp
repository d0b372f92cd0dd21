#pragma once
// Makes text from files, paths and other ranks safe to print, so that nothing in it can control a
// terminal.

#include <string>
#include <string_view>

namespace reprise {

enum class LineBreaks {
  kEscaped,  ///< line breaks become escapes; for text inside a line
  kKept,     ///< line breaks stay; for text that consists of lines
};

/// Escapes everything in the text that a terminal would obey or that a reader could not see, and
/// returns the result. Control characters (C0, DEL, C1) and invalid UTF-8 bytes become escapes like
/// "\x1b". Surrogates, and characters that change the writing direction or break lines, become
/// escapes like "\u202e".
std::string printable(std::string_view text, LineBreaks breaks = LineBreaks::kEscaped);

}  // namespace reprise
