#include "cli/arguments/rename_rule.hpp"

#include <memory>
#include <string_view>
#include <utility>

#include "cli/keys/key_pattern.hpp"
#include "core/format/common_state.hpp"
#include "core/state/renamed_catalog.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

/// Longest key that a substitution may make, as long as the longest that is read. Several that each
/// double a key would else fill the memory.
constexpr std::size_t kRenamedMax = 4096;

struct Substitution {
  std::string word;  ///< as given on the command line
  KeySubstitution rule;
};

[[noreturn]] void refuse(const std::string& word, const std::string& why) {
  throw Error(Code::kUsage, "--rename '" + word + "' " + why +
                                "; write it as for sed, for example 's/^model\\.//'");
}

/// Takes the text up to the next delimiter off `rest`. A delimiter after a backslash is part of the
/// text.
std::string take_part(std::string_view& rest, const std::string& word) {
  const char delimiter = word[1];
  std::string part;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == delimiter) return part;
    if (c == '\\' && !rest.empty()) {
      if (rest.front() != delimiter) part += c;
      part += rest.front();
      rest.remove_prefix(1);
    } else {
      part += c;
    }
  }
  refuse(word, std::string("lacks a '") + delimiter + "'");
}

Substitution substitution_of(const std::string& word) {
  if (word.size() < 2 || word[0] != 's' || word[1] == '\\') refuse(word, "is not a substitution");
  std::string_view rest = std::string_view(word).substr(2);
  const std::string pattern = take_part(rest, word);
  const std::string text = take_part(rest, word);
  if (pattern.empty()) refuse(word, "has an empty expression");
  if (!rest.empty() && rest != "g") refuse(word, "ends in '" + std::string(rest) + "', not in 'g'");
  const Matches matches = rest.empty() ? Matches::kFirst : Matches::kAll;
  return {word, KeySubstitution(pattern, text, matches, "--rename '" + word + "':")};
}

std::string applied(const Substitution& substitution, const std::string& key) {
  std::string renamed = substitution.rule.applied_to(key);
  if (renamed.empty()) refuse(substitution.word, "leaves nothing of the key '" + key + "'");
  if (renamed.size() > kRenamedMax) {
    refuse(substitution.word, "makes a key of more than " + std::to_string(kRenamedMax) +
                                  " characters of '" + key.substr(0, 100) + "'");
  }
  return renamed;
}

}  // namespace

Checkpoint opened(const StoredPath& stored, const std::vector<std::string>& substitutions) {
  if (substitutions.empty()) return Checkpoint::open_any(*stored.store, stored.path);
  std::vector<std::pair<Substitution, bool>> all;  // with true if it changed a key
  for (const auto& word : substitutions) all.emplace_back(substitution_of(word), false);
  const Checkpoint as_stored = Checkpoint::open_any(*stored.store, stored.path);
  Metadata metadata = as_stored.metadata();
  metadata.catalog = renamed(std::move(metadata.catalog), [&all](std::string_view key) {
    std::string next(key);
    if (key == kCommonObjectKey) return next;
    for (auto& [substitution, used] : all) {
      std::string changed = applied(substitution, next);
      used = used || changed != next;
      next = std::move(changed);
    }
    return next;
  });
  for (const auto& [substitution, used] : all) {
    if (!used) refuse(substitution.word, "changes no key of A");
  }
  return as_stored.with(std::move(metadata));
}

}  // namespace reprise::cli
