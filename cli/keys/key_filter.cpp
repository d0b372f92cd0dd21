#include "cli/keys/key_filter.hpp"

#include <algorithm>

namespace reprise::cli {

namespace {

bool any_found(const std::vector<KeyPattern>& patterns, std::string_view key) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [key](const KeyPattern& pattern) { return pattern.found_in(key); });
}

}  // namespace

KeyFilter::KeyFilter(const std::vector<std::string>& keys, const std::vector<std::string>& ignored,
                     const std::string& option) {
  for (const auto& pattern : keys) keys_.emplace_back(pattern, option);
  for (const auto& pattern : ignored) ignored_.emplace_back(pattern, "--ignore");
}

bool KeyFilter::wants(std::string_view key) const {
  return !ignores(key) && (keys_.empty() || any_found(keys_, key));
}

bool KeyFilter::ignores(std::string_view key) const { return any_found(ignored_, key); }

}  // namespace reprise::cli
