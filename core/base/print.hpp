#pragma once
// Formats text for human readers: counts, sizes, joined lists.

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// Returns a size such as "1.50 GiB" or "12 B" for human readers; reports use integers.
std::string human_bytes(std::uint64_t bytes);

/// Returns a count such as "1,234,567".
std::string with_commas(std::uint64_t count);

/// Returns "1 scenario" or "2,000 scenarios".
std::string counted(std::uint64_t count, std::string_view noun);

/// Joins the elements of a range as operator<< prints them.
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

/// Returns the candidate closest to `word` by edit distance; empty if none is close. Messages use
/// it to ask "did you mean".
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
