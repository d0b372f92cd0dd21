#pragma once
// Selects keys by `--keys REGEX` and `--ignore REGEX`. Each option may be repeated. An expression
// may match anywhere in the key.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::cli {

/// A regular expression (ECMAScript). Throws USAGE if it is malformed; the message names `option`.
class KeyPattern {
 public:
  KeyPattern(const std::string& pattern, const std::string& option);

  /// True if the expression matches somewhere in the key. Searches only the first 1024 characters.
  bool found_in(std::string_view key) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

class KeyFilter {
 public:
  KeyFilter(const std::vector<std::string>& keys, const std::vector<std::string>& ignored);

  /// True if no `--ignore` expression matches the key and, if any `--keys` are given, at least one
  /// of them does.
  bool wants(std::string_view key) const;
  /// True if an `--ignore` expression matches the key.
  bool ignores(std::string_view key) const;
  bool everything() const { return keys_.empty() && ignored_.empty(); }

 private:
  std::vector<KeyPattern> keys_;
  std::vector<KeyPattern> ignored_;
};

}  // namespace reprise::cli
