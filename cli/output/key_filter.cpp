#include "cli/output/key_filter.hpp"

#include <algorithm>
#include <regex>

#include "reprise/error.hpp"

namespace reprise::cli {

struct KeyPattern::Compiled {
  std::regex regex;
};

KeyPattern::KeyPattern(const std::string& pattern, const std::string& option) {
  try {
    compiled_ = std::make_shared<const Compiled>(Compiled{std::regex(pattern)});
  } catch (const std::regex_error& error) {
    throw Error(Code::kUsage, option + " '" + pattern +
                                  "' is no regular expression: " + std::string(error.what()));
  }
}

bool KeyPattern::found_in(std::string_view key) const {
  // Searches only a prefix of the key, because std::regex_search recurses once per character.
  constexpr std::size_t kLooked = 1024;
  const std::string_view part = key.substr(0, kLooked);
  return std::regex_search(part.begin(), part.end(), compiled_->regex);
}

namespace {

bool any_found(const std::vector<KeyPattern>& patterns, std::string_view key) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [key](const KeyPattern& pattern) { return pattern.found_in(key); });
}

}  // namespace

KeyFilter::KeyFilter(const std::vector<std::string>& keys,
                     const std::vector<std::string>& ignored) {
  for (const auto& pattern : keys) keys_.emplace_back(pattern, "--keys");
  for (const auto& pattern : ignored) ignored_.emplace_back(pattern, "--ignore");
}

bool KeyFilter::wants(std::string_view key) const {
  return !ignores(key) && (keys_.empty() || any_found(keys_, key));
}

bool KeyFilter::ignores(std::string_view key) const { return any_found(ignored_, key); }

}  // namespace reprise::cli
