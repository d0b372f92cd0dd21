#include "tests/layers/dead_code.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace reprise::layers {
namespace {

constexpr std::string_view kPublic = "include/reprise/";

struct Token {
  std::string_view text;
  int line = 0;
  bool directive = false;  ///< true in a line such as #define
};

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name(std::string_view text) {
  return !text.empty() && is_name_char(text[0]) &&
         std::isdigit(static_cast<unsigned char>(text[0])) == 0;
}
bool is_any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

/// Splits a source into names, numbers and signs; "::" is one sign. Leaves out comments, texts,
/// characters and includes.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> tokens() {
    while (at_ < text_.size()) step();
    return std::move(tokens_);
  }
  /// The paths between quotes of the source's includes.
  std::vector<std::string> includes;

 private:
  bool sees(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      const bool goes_on = at_ > 0 && text_[at_ - 1] == '\\';
      directive_ = directive_ && goes_on;
      ++line_, ++at_;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '\\') {
      ++at_;
    } else if (sees("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (sees("/*")) {
      skip_to(text_.find("*/", at_ + 2), 2);
    } else if (sees("R\"")) {
      const auto open = text_.find('(', at_);
      if (open == std::string_view::npos) return skip_to(open, 0);
      const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
      skip_to(text_.find(close, open), close.size());
    } else if (c == '"' || c == '\'') {
      quoted(c);
    } else if (c == '#') {
      directive();
    } else if (is_name_char(c)) {
      word();
    } else {
      add(sees("::") ? 2 : 1);
    }
  }
  void add(std::size_t length) {
    tokens_.push_back({text_.substr(at_, length), line_, directive_});
    at_ += length;
  }
  void skip_to(std::size_t end, std::size_t more) {
    const std::size_t stop = end == std::string_view::npos ? text_.size() : end + more;
    line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + stop, '\n'));
    at_ = stop;
  }
  void quoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    if (at_ < text_.size() && text_[at_] == quote) ++at_;
  }
  void directive() {
    const std::string_view rest = text_.substr(at_, text_.find('\n', at_) - at_);
    const auto word = rest.find_first_not_of(" \t", 1);
    const bool includes_one =
        word != std::string_view::npos && rest.substr(word).starts_with("include");
    if (includes_one ||
        (word != std::string_view::npos && rest.substr(word).starts_with("pragma"))) {
      const auto open = rest.find('"');
      const auto close = rest.find('"', open + 1);
      if (includes_one && open != std::string_view::npos && close != std::string_view::npos) {
        includes.emplace_back(rest.substr(open + 1, close - open - 1));
      }
      at_ += rest.size();
      return;
    }
    directive_ = true;
    ++at_;
  }
  void word() {
    std::size_t end = at_;
    const bool number = std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;
    while (end < text_.size() &&
           (is_name_char(text_[end]) || (number && (text_[end] == '\'' || text_[end] == '.')))) {
      ++end;
    }
    add(end - at_);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool directive_ = false;
  std::vector<Token> tokens_;
};

enum class Scope { kNamespace, kClass, kEnum, kBody };

/// Tells the declarations of names in a source from their uses.
class Reader {
 public:
  Reader(std::vector<Token> tokens, bool header) : tokens_(std::move(tokens)), header_(header) {}

  std::map<std::string_view, int> declared;  ///< with the line of the first declaration
  std::set<std::string_view> used;
  std::set<std::string_view> overrides;

  void read() {
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      const Token& token = tokens_[at_];
      if (token.directive) {
        if (is_name(token.text)) used.insert(token.text);
        continue;
      }
      follow_scopes(token.text);
      if (is_name(token.text)) read_name(token);
    }
  }

 private:
  struct Open {
    Scope scope;
    int parens;  ///< that were open outside
    std::string_view name;
  };

  std::string_view text(std::size_t at) const {
    return at < tokens_.size() ? tokens_[at].text : "";
  }
  std::string_view before(std::size_t at) const { return at > 0 ? text(at - 1) : ""; }

  void follow_scopes(std::string_view sign) {
    if (sign == "(" || sign == "[") {
      ++parens_;
    } else if (sign == ")" || sign == "]") {
      --parens_;
    } else if (sign == "{") {
      const bool named = pending_ != Scope::kBody && parens_ == 0;
      // extern "C" is a namespace without a name
      const Scope scope = named                     ? pending_
                          : before(at_) == "extern" ? Scope::kNamespace
                                                    : Scope::kBody;
      open_.push_back({scope, parens_, named ? class_ : ""});
      pending_ = Scope::kBody, parens_ = 0, class_ = "";
    } else if (sign == "}") {
      if (open_.empty()) return;
      parens_ = open_.back().parens;
      open_.pop_back();
    } else if ((sign == ";" || sign == "=") && parens_ == 0) {
      pending_ = Scope::kBody;
    } else if (sign == "namespace") {
      pending_ = Scope::kNamespace;
    } else if (sign == "enum") {
      pending_ = Scope::kEnum;
    } else if (is_any_of(sign, {"class", "struct", "union"}) && parens_ == 0 &&
               !is_any_of(before(at_), {"enum", "<", ","})) {
      pending_ = Scope::kClass;
    }
  }

  bool is_in(Scope scope) const {
    return std::any_of(open_.begin(), open_.end(),
                       [scope](const Open& open) { return open.scope == scope; });
  }
  bool is_directly_in(Scope scope) const { return !open_.empty() && open_.back().scope == scope; }

  void read_name(const Token& token) {
    const std::string_view name = token.text;
    const std::string_view prior = before(at_), next = text(at_ + 1);
    if (is_any_of(prior, {"class", "struct", "union"}) ||
        (prior == "]" && pending_ == Scope::kClass) || (prior == "enum" && name != "class")) {
      if (is_any_of(next, {";", "{", ":", "final"})) {
        class_ = name;
        return declare(token);
      }
    }
    const bool outside = !is_in(Scope::kBody) && parens_ == 0;
    if (outside && ((prior == "using" && next == "=") || prior == "concept")) return declare(token);
    if (outside && !is_directly_in(Scope::kEnum) && is_declared_here(name, next)) {
      return declare(token);
    }
    // A qualified definition is no use of the class, and neither is what the class says of itself.
    if (outside && !header_ && next == "::") return;
    for (const Open& open : open_) {
      if (open.scope == Scope::kClass && open.name == name) return;
    }
    used.insert(name);
  }

  /// True if a function, a constructor, a constant or a field is declared or defined here.
  bool is_declared_here(std::string_view name, std::string_view next) const {
    std::size_t first = at_;  // of Class::name
    while (first >= 2 && text(first - 1) == "::" && is_name(text(first - 2))) first -= 2;
    const bool qualified = first != at_;
    const std::string_view prior = before(first);
    const bool typed =
        (is_name(prior) && !is_any_of(prior, {"return", "operator", "else", "throw", "new"})) ||
        is_any_of(prior, {">", "*", "&", "]"});
    if (next == "(") {
      if (is_any_of(name, {"operator", "requires", "decltype", "alignas", "noexcept", "explicit",
                           "static_assert"})) {
        return false;
      }
      return typed || is_any_of(prior, {"", ";", "}", "{"}) || prior == "~" ||
             (!qualified && prior == ":" && is_directly_in(Scope::kClass));
    }
    const bool constant = !is_in(Scope::kClass) && name.size() > 1 && name[0] == 'k' &&
                          std::isupper(static_cast<unsigned char>(name[1])) != 0;
    const bool member = is_directly_in(Scope::kClass) && !qualified &&
                        !is_any_of(name, {"const", "final", "noexcept", "override"});
    return header_ && (constant || member) && typed && is_any_of(next, {"=", "{", ";", "["});
  }

  void declare(const Token& token) {
    declared.emplace(token.text, token.line);
    if (text(at_ + 1) != "(") return;
    int depth = 0;
    for (std::size_t at = at_ + 1; at < tokens_.size(); ++at) {
      if (text(at) == "(") ++depth;
      if (text(at) == ")") --depth;
      if (depth == 0 && is_any_of(text(at), {";", "{"})) return;
      if (text(at) == "override") overrides.insert(token.text);
    }
  }

  std::vector<Token> tokens_;
  bool header_;
  std::size_t at_ = 0;
  int parens_ = 0;
  Scope pending_ = Scope::kBody;
  std::string_view class_;  ///< the class whose body begins next
  std::vector<Open> open_;
};

struct Source {
  const SourceFile* file = nullptr;
  bool production = false;
  bool header = false;
  std::vector<std::string> includes;  ///< paths from the root of the tree
  std::map<std::string_view, int> declared;
  std::set<std::string_view> used;
};

std::string_view stem_of(std::string_view path) { return path.substr(0, path.rfind('.')); }
/// All sources of the tree, by path.
class Sources {
 public:
  Sources(const LayerTable& table, const std::vector<SourceFile>& tree) {
    for (const SourceFile& file : tree) {
      if (!is_code(file.path)) continue;
      Source& one = all_[file.path];
      one.file = &file;
      one.production = table.contains(folder_of(file.path)) || file.path.starts_with("trainers/");
      one.header = is_any_of(file.path.substr(file.path.rfind('.')), {".hpp", ".h", ".cuh"});
    }
    for (auto& [path, one] : all_) read(path, one);
  }

  const std::map<std::string, Source, std::less<>>& all() const { return all_; }
  /// True if no file of production can need this declaration.
  bool is_taken(std::string_view name) const { return taken_.contains(name); }

  /// True if a file of production that sees the header uses the name.
  bool uses(const std::string& header, std::string_view name) const {
    const auto found = users_.find(name);
    if (found == users_.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(), [&](const std::string& user) {
      return user == header || seen_from(user).contains(header);
    });
  }
  /// True if a test names it.
  bool is_tested(std::string_view name) const { return tested_.contains(name); }

 private:
  void read(const std::string& path, Source& one) {
    Lexer lexer(one.file->text);
    std::vector<Token> tokens = lexer.tokens();
    for (const std::string& name : lexer.includes) {
      for (const std::string& target : {name, "include/" + name, folder_of(path) + '/' + name}) {
        if (!all_.contains(target)) continue;
        one.includes.push_back(target);
        break;
      }
    }
    if (path.starts_with(kPublic) || !one.production) {
      auto& names = path.starts_with(kPublic) ? taken_ : tested_;
      for (const Token& token : tokens) names.insert(token.text);
      return;
    }
    Reader reader(std::move(tokens), one.header);
    reader.read();
    taken_.insert(reader.overrides.begin(), reader.overrides.end());
    for (const std::string_view name : reader.used) users_[name].push_back(path);
    one.declared = std::move(reader.declared);
    one.used = std::move(reader.used);
  }

  const std::unordered_set<std::string>& seen_from(const std::string& path) const {
    const auto [place, fresh] = seen_.try_emplace(path);
    if (!fresh) return place->second;
    std::unordered_set<std::string> seen;
    std::vector<std::string> open = {path};
    while (!open.empty()) {
      const auto from = all_.find(open.back());
      open.pop_back();
      for (const std::string& next : from->second.includes) {
        if (seen.insert(next).second) open.push_back(next);
      }
    }
    return seen_[path] = std::move(seen);
  }

  std::map<std::string, Source, std::less<>> all_;
  std::unordered_set<std::string_view> taken_;   ///< overrides, and what public headers name
  std::unordered_set<std::string_view> tested_;  ///< what files outside production name
  std::unordered_map<std::string_view, std::vector<std::string>> users_;
  mutable std::unordered_map<std::string, std::unordered_set<std::string>> seen_;
};

/// Gathers findings, but not those that are excused.
class Findings {
 public:
  explicit Findings(const std::vector<Kept>& kept) : kept_(kept), matched_(kept.size(), false) {}

  void add(const std::string& path, int line, const std::string& name, const std::string& what) {
    const std::string key = name.empty() ? path : path + ": " + name;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i].what != key) continue;
      matched_[i] = true;
      return;
    }
    all_.push_back({.path = path, .line = line, .what = name + (name.empty() ? "" : " ") + what});
  }
  std::vector<Finding> all() {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (matched_[i]) continue;
      all_.push_back({.path = kept_[i].what,
                      .line = 0,
                      .what = "is used, or is not there: it needs no exception"});
    }
    return std::move(all_);
  }

 private:
  const std::vector<Kept>& kept_;
  std::vector<bool> matched_;
  std::vector<Finding> all_;
};

}  // namespace

std::vector<Finding> check_dead_code(const LayerTable& table, const std::vector<SourceFile>& tree,
                                     const std::vector<Kept>& kept) {
  const Sources sources(table, tree);
  std::set<std::string> included;  // by production, other than by the header's own source
  for (const auto& [path, one] : sources.all()) {
    for (const std::string& target : one.includes) {
      if (one.production && stem_of(path) != stem_of(target)) included.insert(target);
    }
  }
  Findings findings(kept);
  for (const auto& [path, one] : sources.all()) {
    if (!one.production || !one.header || path.starts_with(kPublic)) continue;
    if (!included.contains(path)) {
      findings.add(path, 0, "", "is included by no other file of production");
    }
    for (const auto& [name, line] : one.declared) {
      if (sources.is_taken(name) || sources.uses(path, name)) continue;
      findings.add(path, line, std::string(name),
                   sources.is_tested(name) ? "is used by tests alone" : "is used by nobody");
    }
  }
  return findings.all();
}

}  // namespace reprise::layers
