#include "driver/language/name_expression.hpp"

#include <algorithm>
#include <cctype>

#include "core/base/nearest.hpp"
#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr int kNestingMax = 100;
constexpr std::size_t kNearNames = 5;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool contains(const std::string& name, const std::string& word) {
  return name.find(word) != std::string::npos;
}

std::vector<std::string> lower_case(const std::vector<std::string>& names) {
  std::vector<std::string> lower;
  for (const auto& name : names) lower.push_back(lower_case(std::string_view(name)));
  return lower;
}

/// Returns the parts of the names that somebody may have wanted to write: "a/b[k=1,l=2]" has the
/// parts a/b, a, b, k=1 and l=2.
std::vector<std::string> parts_of(const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const auto& name : names) {
    parts.push_back(name.substr(0, name.find('[')));
    std::string part;
    for (const char c : name + "/") {
      const bool ends = std::string_view("/[,]{}").find(c) != std::string_view::npos;
      if (!ends) part += c;
      if (!ends || part.empty()) continue;
      parts.push_back(std::move(part));
      part.clear();
    }
  }
  return parts;
}

}  // namespace

/// Reads an expression by its grammar: alternatives of conjunctions of words.
class NameParser {
 public:
  using Holds = NameExpression::Holds;

  NameParser(std::string_view text, std::vector<std::string>& words) : text_(text), words_(words) {
    next();
  }

  Holds all() {
    Holds holds = either();
    if (!token_.empty()) refuse("has '" + token_ + "' after the end of the expression");
    return holds;
  }

 private:
  Holds either() {
    Holds left = both();
    while (token_ == "or") {
      next();
      left = [left, right = both()](std::string_view name) { return left(name) || right(name); };
    }
    return left;
  }

  Holds both() {
    Holds left = one();
    while (token_ == "and") {
      next();
      left = [left, right = one()](std::string_view name) { return left(name) && right(name); };
    }
    return left;
  }

  Holds one() {
    if (++depth_ > kNestingMax) refuse("is nested too deeply");
    Holds holds = token_ == "not" ? negated() : token_ == "(" ? in_parentheses() : word();
    --depth_;
    return holds;
  }

  Holds negated() {
    next();
    return [inner = one()](std::string_view name) { return !inner(name); };
  }

  Holds in_parentheses() {
    next();
    Holds inner = either();
    if (token_ != ")") refuse("lacks a ')'");
    next();
    return inner;
  }

  Holds word() {
    if (token_.empty()) refuse("ends where a part of a name is missing");
    if (token_ == ")" || token_ == "and" || token_ == "or") {
      refuse("has '" + token_ + "' where a part of a name is missing");
    }
    words_.push_back(lower_case(std::string_view(token_)));
    next();
    return [word = words_.back()](std::string_view name) {
      return name.find(word) != std::string_view::npos;
    };
  }

  void next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    begin_ = at_;
    const auto is_parenthesis = [this] { return text_[at_] == '(' || text_[at_] == ')'; };
    if (at_ < text_.size() && is_parenthesis()) {
      ++at_;
    } else {
      while (at_ < text_.size() && text_[at_] != ' ' && !is_parenthesis()) ++at_;
    }
    token_ = text_.substr(begin_, at_ - begin_);
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Code::kUsage, "-k '" + std::string(text_) + "' " + what + ", at character " +
                                  std::to_string(begin_ + 1) +
                                  "; write for example: -k 'ep2 and not (mimo or rerun)'");
  }

  std::string_view text_;
  std::vector<std::string>& words_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;  ///< where the token begins
  std::string token_;      ///< empty at the end
  int depth_ = 0;
};

NameExpression::NameExpression(const std::string& text)
    : text_(text), holds_(NameParser(text_, words_).all()) {}

bool NameExpression::holds_for(std::string_view name) const { return holds_(lower_case(name)); }

std::vector<std::string> NameExpression::words_without_match(
    const std::vector<std::string>& names) const {
  const auto lower = lower_case(names);
  std::vector<std::string> without;
  for (const auto& word : words_) {
    const bool found = std::any_of(lower.begin(), lower.end(),
                                   [&word](const auto& name) { return contains(name, word); });
    if (!found) without.push_back(word);
  }
  return without;
}

std::string NameExpression::explain_no_match(const std::vector<std::string>& names) const {
  std::string text =
      "-k '" + text_ + "' selects nothing out of " + counted(names.size(), "scenario");
  const auto without = words_without_match(names);
  for (const auto& word : without) {
    const auto near = similar(word, parts_of(names), kNearNames);
    text += "; no name has '" + word + "'" +
            (near.empty() ? "" : ", the nearest are: " + join(near, ", "));
  }
  if (!without.empty() || names.empty()) return text;
  std::vector<std::string> with_any;
  for (const auto& name : names) {
    const std::string lower = lower_case(std::string_view(name));
    const bool any = std::any_of(words_.begin(), words_.end(),
                                 [&lower](const auto& word) { return contains(lower, word); });
    if (any) with_any.push_back(name);
  }
  return text + "; names with one of its words: " + join_first(with_any, kNearNames);
}

}  // namespace reprise::driver
