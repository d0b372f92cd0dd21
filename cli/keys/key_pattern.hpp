#pragma once
// Regular expressions from the command line, which are matched with keys. RE2 matches them in time
// proportional to the key, whatever the expression, so that keys of any file can be matched.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::cli {

/// A regular expression, in RE2's syntax: that of Perl without what needs backtracking, which is
/// backreferences and looking ahead or behind. Throws USAGE if it is malformed or not supported;
/// the message begins with `option` and says where in the expression the mistake is.
class KeyPattern {
 public:
  KeyPattern(const std::string& pattern, const std::string& option);

  /// True if the expression matches somewhere in the key.
  bool found_in(std::string_view key) const;
  /// Returns what the groups of the expression matched, if it matches the whole key.
  std::optional<std::vector<std::string>> groups_of(std::string_view key) const;

 protected:
  struct Compiled;
  const Compiled& compiled() const { return *compiled_; }

 private:
  std::shared_ptr<const Compiled> compiled_;
};

enum class Matches { kFirst, kAll };

/// A regular expression and the text that replaces what it matches. In the text, "\1" to "\9" and
/// "$1" to "$9" are what a group of the expression matched; "&" and "$&" are the whole match; "\&",
/// "\\", "$$" and "\$" are the characters themselves. Throws USAGE also for a group that the
/// expression does not have.
class KeySubstitution : public KeyPattern {
 public:
  KeySubstitution(const std::string& pattern, const std::string& text, Matches matches,
                  const std::string& option);

  std::string applied_to(std::string_view key) const;

 private:
  std::string rewrite_;  ///< the text, in RE2's form
  Matches matches_;
};

}  // namespace reprise::cli
