#pragma once
// Writes a text to a file that the user named: the one way for verbs to do so.

#include <string>
#include <string_view>

namespace reprise::cli {

/// Throws what write_text() would throw because of what is at `path` now: for verbs that work long
/// before they write. Does nothing if the path is empty.
void require_text_place(const std::string& path, const std::string& what);
/// Writes or overwrites the file. Throws the error of the call that failed, with `what` before it:
/// "the card can't be written: ...". Follows links. Refuses a pipe, which would wait for a reader.
void write_text(const std::string& path, std::string_view text, const std::string& what);

}  // namespace reprise::cli
