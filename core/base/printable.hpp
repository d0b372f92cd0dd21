#pragma once
// Text from files, paths and peers as a terminal may have it: nothing in it is a command.

#include <string>
#include <string_view>

namespace reprise {

enum class LineBreaks {
  kEscaped,  ///< the text is a part of a line
  kKept,     ///< the text is lines
};

/// Returns the text with everything written out that a terminal would obey or a reader could not
/// see: control characters (C0, DEL, C1) and bytes that are no UTF-8 as "\x1b", characters that
/// turn the direction of writing, break lines or stand for half a character as "\u202e".
std::string printable(std::string_view text, LineBreaks breaks = LineBreaks::kEscaped);

}  // namespace reprise
