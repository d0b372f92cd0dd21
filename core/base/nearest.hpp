#pragma once
// Finds the words that are most like a misspelt one.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// Returns at most `most` of the candidates, the most similar to `word` first, by edit distance of
/// the whole or of the beginning. Equally similar ones keep their order. Each is returned once.
std::vector<std::string> nearest(std::string_view word, std::vector<std::string> candidates,
                                 std::size_t most);

/// Returns what nearest() does, without the candidates that are not like `word`: half of its
/// letters or more would have to be changed.
std::vector<std::string> similar(std::string_view word, std::vector<std::string> candidates,
                                 std::size_t most);

}  // namespace reprise
