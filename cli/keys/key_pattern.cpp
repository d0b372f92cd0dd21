#include "cli/keys/key_pattern.hpp"

#include <re2/re2.h>

#include <cctype>

#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

RE2::Options quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

re2::StringPiece piece_of(std::string_view text) { return {text.data(), text.size()}; }

bool is_same_mistake(const RE2& a, const RE2& b) {
  return a.error_code() == b.error_code() && a.error_arg() == b.error_arg();
}

/// Returns where in the pattern the mistake begins. RE2 only quotes the part that it does not
/// accept. If that part is the whole pattern, such as for a parenthesis that is never closed,
/// returns the end of the longest part that has no mistake.
std::size_t place_of_mistake(const std::string& pattern, const RE2& wrong) {
  const std::string& quoted = wrong.error_arg();
  if (!quoted.empty() && quoted.size() < pattern.size()) {
    for (auto at = pattern.find(quoted); at != std::string::npos;
         at = pattern.find(quoted, at + 1)) {
      const RE2 until(pattern.substr(0, at + quoted.size()), quiet());
      if (is_same_mistake(until, wrong)) return at;
    }
  }
  std::size_t size = pattern.size() - 1;
  while (size > 0 && !RE2(pattern.substr(0, size), quiet()).ok()) --size;
  return size;
}

std::string words_for(const std::string& pattern, const RE2& wrong) {
  const bool lacking = wrong.error_code() == RE2::ErrorBadPerlOp ||
                       (wrong.error_code() == RE2::ErrorBadEscape &&
                        wrong.error_arg().size() == 2 && std::isdigit(wrong.error_arg()[1]) != 0);
  std::string words = "is not a valid regular expression: " + wrong.error() + ", at character " +
                      std::to_string(place_of_mistake(pattern, wrong) + 1);
  if (lacking) words += "; backreferences and lookaround are not supported";
  return words;
}

/// Writes the text of a substitution in RE2's form, where "\0" is the whole match and a backslash
/// is written twice.
std::string rewrite_of(const std::string& text) {
  std::string rewrite;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const bool group = next >= '1' && next <= '9';
    const bool escape = c == '\\' && next != '\0';
    const bool dollar = c == '$' && (group || next == '&' || next == '$');
    if (escape || dollar) ++i;
    if ((escape || dollar) && group) {
      rewrite += {'\\', next};
    } else if (c == '&' || (dollar && next == '&')) {
      rewrite += "\\0";
    } else {
      const char itself = escape || dollar ? next : c;
      rewrite.append(itself == '\\' ? 2 : 1, itself);
    }
  }
  return rewrite;
}

}  // namespace

struct KeyPattern::Compiled {
  explicit Compiled(const std::string& pattern) : re2(pattern, quiet()) {}
  RE2 re2;
};

KeyPattern::KeyPattern(const std::string& pattern, const std::string& option)
    : compiled_(std::make_shared<const Compiled>(pattern)) {
  if (compiled_->re2.ok()) return;
  throw Error(Code::kUsage, option + " '" + pattern + "' " + words_for(pattern, compiled_->re2));
}

bool KeyPattern::found_in(std::string_view key) const {
  return RE2::PartialMatch(piece_of(key), compiled_->re2);
}

std::optional<std::vector<std::string>> KeyPattern::groups_of(std::string_view key) const {
  const auto count = static_cast<std::size_t>(compiled_->re2.NumberOfCapturingGroups());
  std::vector<std::string> groups(count);
  std::vector<RE2::Arg> arguments;
  for (auto& group : groups) arguments.emplace_back(&group);
  std::vector<const RE2::Arg*> pointers;
  for (const auto& argument : arguments) pointers.push_back(&argument);
  if (!RE2::FullMatchN(piece_of(key), compiled_->re2, pointers.data(), static_cast<int>(count))) {
    return std::nullopt;
  }
  return groups;
}

KeySubstitution::KeySubstitution(const std::string& pattern, const std::string& text,
                                 Matches matches, const std::string& option)
    : KeyPattern(pattern, option), rewrite_(rewrite_of(text)), matches_(matches) {
  const int groups = compiled().re2.NumberOfCapturingGroups();
  const int named = RE2::MaxSubmatch(rewrite_);
  if (named <= groups) return;
  throw Error(Code::kUsage, option + " '" + text + "' names group " + std::to_string(named) +
                                " of the expression '" + pattern + "', which has " +
                                (groups == 0 ? "none" : "only " + std::to_string(groups)));
}

std::string KeySubstitution::applied_to(std::string_view key) const {
  std::string result(key);
  if (matches_ == Matches::kAll) {
    RE2::GlobalReplace(&result, compiled().re2, rewrite_);
  } else {
    RE2::Replace(&result, compiled().re2, rewrite_);
  }
  return result;
}

}  // namespace reprise::cli
