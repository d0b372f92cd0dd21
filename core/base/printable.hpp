#pragma once
// Makes text from files, paths and peers safe for a terminal: nothing in it acts as a command.

#include <string>
#include <string_view>

namespace reprise {

enum class LineBreaks {
  kEscaped,  ///< the text is part of a line
  kKept,     ///< the text consists of lines
};

/// Returns the text with everything escaped that a terminal would obey or a reader could not see:
/// control characters (C0, DEL, C1) and invalid UTF-8 bytes as "\x1b"; characters that change the
/// writing direction, break lines or are surrogates as "\u202e".
std::string printable(std::string_view text, LineBreaks breaks = LineBreaks::kEscaped);

}  // namespace reprise
