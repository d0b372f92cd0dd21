#pragma once
// Measures and cuts text by the characters that a reader sees, not by bytes. A character is a code
// point of UTF-8 here: it takes one column of a terminal unless it is wide or combines with
// another.

#include <cstddef>
#include <string_view>

namespace reprise {

std::size_t characters_in(std::string_view text);

/// Returns the first or last `count` characters of the text, or the whole text if it has fewer.
std::string_view first_characters(std::string_view text, std::size_t count);
std::string_view last_characters(std::string_view text, std::size_t count);

}  // namespace reprise
