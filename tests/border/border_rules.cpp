#include "tests/border/border_rules.hpp"

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

namespace reprise::border {
namespace {

template <class Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) visit(line);
}

/// Returns the first group of each line's match of `pattern`, unless `allowed` matches that group.
std::vector<std::string> found(std::string_view text, const std::regex& pattern,
                               const std::regex& allowed) {
  std::vector<std::string> all;
  for_each_line(text, [&](const std::string& line) {
    std::smatch match;
    if (!std::regex_search(line, match, pattern)) return;
    if (!std::regex_match(match[1].str(), allowed)) all.push_back(match[1]);
  });
  return all;
}

}  // namespace

std::vector<std::string> foreign_includes(std::string_view text) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*(\S+))");
  static const std::regex kAllowed(R"(<[a-z_]+>|"reprise/[a-z_]+\.hpp")");
  return found(text, kInclude, kAllowed);
}

std::vector<std::string> foreign_macros(std::string_view text) {
  static const std::regex kDefine(R"(^\s*#\s*define\s+(\w+))");
  static const std::regex kAllowed(R"(REPRISE_\w+)");
  return found(text, kDefine, kAllowed);
}

std::vector<std::string> foreign_namespaces(std::string_view text) {
  static const std::regex kNamespace(R"(^namespace\s+([\w:]+))");
  static const std::regex kAllowed(R"(reprise|detail)");
  return found(text, kNamespace, kAllowed);
}

std::vector<std::string> foreign_words(std::string_view text) {
  static const std::regex kWord(R"((judge|\blanes?\b|harness|scenario|mutant))", std::regex::icase);
  return found(text, kWord, std::regex());
}

std::vector<std::string> foreign_symbols(std::string_view listing) {
  // Matches "0000000000012340 T reprise::save(...)"; undefined symbols have no address.
  static const std::regex kSymbol(R"(^[0-9a-f]* *[A-Za-z] (.*)$)");
  static const std::regex kAllowed(R"((typeinfo for |typeinfo name for |vtable for )?reprise::.*)");
  return found(listing, kSymbol, kAllowed);
}

std::vector<std::string> undeclared_symbols(std::string_view listing, const std::string& headers) {
  static const std::regex kSymbol(R"(\breprise::([\w:~]+))");
  static const std::regex kWord(R"(\w+)");
  const std::sregex_iterator words(headers.begin(), headers.end(), kWord);
  std::set<std::string> known;
  for (auto word = words; word != std::sregex_iterator(); ++word) known.insert(word->str());
  std::vector<std::string> undeclared;
  for_each_line(listing, [&](const std::string& line) {
    std::smatch symbol;
    if (!std::regex_search(line, symbol, kSymbol)) return;
    const std::string name = symbol[1];
    const std::sregex_iterator parts(name.begin(), name.end(), kWord);
    if (!std::all_of(parts, {}, [&](const auto& part) { return known.contains(part.str()); })) {
      undeclared.push_back(name);
    }
  });
  return undeclared;
}

}  // namespace reprise::border
