#include "core/base/nearest.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/print.hpp"

namespace reprise {

namespace {

/// Returns how different the words are. If only the beginning of `candidate` is like `word`, the
/// rest of it hardly counts.
std::size_t unlikeness(std::string_view word, std::string_view candidate) {
  return std::min(edit_distance(word, candidate),
                  1 + edit_distance(word, candidate.substr(0, word.size())));
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, std::vector<std::string> candidates,
                                 std::size_t most) {
  std::set<std::string> seen;
  std::vector<std::pair<std::size_t, std::string>> by_distance;
  for (auto& candidate : candidates) {
    if (!seen.insert(candidate).second) continue;
    const std::size_t distance = unlikeness(word, candidate);
    by_distance.emplace_back(distance, std::move(candidate));
  }
  std::stable_sort(by_distance.begin(), by_distance.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [distance, name] : by_distance) {
    if (names.size() == most) break;
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> similar(std::string_view word, std::vector<std::string> candidates,
                                 std::size_t most) {
  std::erase_if(candidates, [word](const std::string& candidate) {
    return unlikeness(word, candidate) > word.size() / 2;
  });
  return nearest(word, std::move(candidates), most);
}

}  // namespace reprise
