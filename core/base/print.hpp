#pragma once
// Formats text for people: counts, sizes, joined lists.

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// Returns "1.50 GiB", "12 B". For people; reports use integers.
std::string human_bytes(std::uint64_t bytes);

/// Returns "1,234,567".
std::string with_commas(std::uint64_t count);

/// Joins elements printed by operator<<.
template <class Range>
std::string join(const Range& range, std::string_view separator) {
  std::ostringstream out;
  bool first = true;
  for (const auto& item : range) {
    if (!first) out << separator;
    out << item;
    first = false;
  }
  return out.str();
}

/// Joins the first `most` names and counts the rest: "a, b and 3 more".
std::string join_first(const std::vector<std::string>& names, std::size_t most = 6);

/// Returns the candidate closest to `word` by edit distance, or empty if none is close: for "did
/// you mean" in messages.
template <class Range>
std::string closest(std::string_view word, const Range& candidates);

std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Range>
std::string closest(std::string_view word, const Range& candidates) {
  std::string best;
  std::size_t best_distance = word.size() / 2 + 1;
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace reprise
