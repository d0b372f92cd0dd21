#pragma once
// Selects scenarios by parts of their names, as `-k` does: "ep2 and not (mimo or rerun)".

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::driver {

/// An expression of words, `and`, `or`, `not` and parentheses. `not` binds closest, then `and`. A
/// word holds for a name that contains it; upper and lower case are the same. Words end at spaces
/// and parentheses, so they may be parts of rows, such as "[k=1".
class NameExpression {
 public:
  /// Throws USAGE, with the place, if the text is not such an expression.
  explicit NameExpression(const std::string& text);

  bool holds_for(std::string_view name) const;
  /// Returns the words that no name contains.
  std::vector<std::string> words_without_match(const std::vector<std::string>& names) const;
  /// Explains that the expression holds for none of these names. Says which words none contains,
  /// and names those that are most like them.
  std::string explain_no_match(const std::vector<std::string>& names) const;

 private:
  using Holds = std::function<bool(std::string_view name)>;
  friend class NameParser;

  std::string text_;
  std::vector<std::string> words_;  ///< in lower case
  Holds holds_;
};

}  // namespace reprise::driver
