#pragma once
// Splits a text into words as a shell does, for options that hold several words.

#include <string>
#include <string_view>
#include <vector>

namespace reprise::cli {

/// Splits at blanks. Single and double quotes keep blanks, and a backslash keeps the next character
/// (not within single quotes). Nothing is expanded. Throws USAGE if a quote is not closed.
std::vector<std::string> shell_words(std::string_view text);

}  // namespace reprise::cli
