#pragma once
// Selects keys by `--keys REGEX` and `--ignore REGEX`, each repeatable, searched anywhere in the
// key.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::cli {

/// A regular expression (ECMAScript). USAGE if it is malformed; `option` names its source.
class KeyPattern {
 public:
  KeyPattern(const std::string& pattern, const std::string& option);

  /// Searches only the first 1024 characters of a longer key.
  bool found_in(std::string_view key) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

class KeyFilter {
 public:
  KeyFilter(const std::vector<std::string>& keys, const std::vector<std::string>& ignored);

  /// True if no `--ignore` matches, and some `--keys` does or there is none.
  bool wants(std::string_view key) const;
  /// True if some `--ignore` matches.
  bool ignores(std::string_view key) const;
  bool everything() const { return keys_.empty() && ignored_.empty(); }

 private:
  std::vector<KeyPattern> keys_;
  std::vector<KeyPattern> ignored_;
};

}  // namespace reprise::cli
