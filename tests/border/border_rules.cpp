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

/// Searches each line for `pattern` and returns the pattern's first group, unless this group
/// matches `allowed`.
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
  // Matches lines such as "0000000000012340 T reprise::save(...)". The address is optional, because
  // undefined symbols have none.
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

std::vector<std::string> public_codes(std::string_view header) {
  static const std::regex kEnumerator(R"(^  (k[A-Z]\w*)( = \d+)?,)");
  std::vector<std::string> codes;
  bool inside = false;
  for_each_line(header, [&](const std::string& line) {
    std::smatch match;
    if (line.find("enum class Code ") != line.npos) inside = true;
    if (line.rfind("};", 0) == 0) inside = false;
    if (inside && std::regex_search(line, match, kEnumerator)) {
      codes.push_back("Code::" + match[1].str());
    }
  });
  return codes;
}

std::set<std::string> said_codes(std::string_view source, const std::string& scope) {
  std::string text;
  for_each_line(
      source, [&text](const std::string& line) { text += line.substr(0, line.find("//")) + '\n'; });
  // Codes that the source file handles rather than reports: they are compared with something,
  // follow `case`, or initialize a member.
  const std::string code = scope + R"(::k[A-Z]\w*\b)";
  const std::regex compared(R"((==|!=|<=|>=|\bcase|\bCode code =)\s*)" + code + "|" + code +
                            R"(\s*(==|!=|<=|>=))");
  text = std::regex_replace(text, compared, "");
  const std::regex said(R"(\b)" + code);
  std::set<std::string> codes;
  for (std::sregex_iterator at(text.begin(), text.end(), said), end; at != end; ++at) {
    codes.insert(at->str());
  }
  return codes;
}

}  // namespace reprise::border
