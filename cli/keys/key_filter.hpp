#pragma once
// Selects keys by `--keys REGEX` and `--ignore REGEX`. Each option may be repeated. An expression
// may match anywhere in the key.

#include <string>
#include <string_view>
#include <vector>

#include "cli/keys/key_pattern.hpp"

namespace reprise::cli {

class KeyFilter {
 public:
  /// `option` is what messages call `--keys`.
  KeyFilter(const std::vector<std::string>& keys, const std::vector<std::string>& ignored,
            const std::string& option = "--keys");

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
