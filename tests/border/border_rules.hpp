#pragma once
// Defines rules for the text of public headers and for the exports of shared libraries.

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::border {

/// Returns the includes that name neither a public header nor a header of the standard library.
/// Each is returned as it is written in the text.
std::vector<std::string> foreign_includes(std::string_view text);
/// Returns the names of macros that the text defines without the prefix REPRISE_.
std::vector<std::string> foreign_macros(std::string_view text);
/// Returns the top-level namespaces that the text opens, except reprise and std. The text may open
/// std to specialize std::hash.
std::vector<std::string> foreign_namespaces(std::string_view text);
/// Returns the words of the text that only the harness uses and that mean nothing to outside
/// programs. Each is returned as it is written in the text.
std::vector<std::string> foreign_words(std::string_view text);
/// Returns the lines of a listing (`nm -D --defined-only -C`) whose symbols are outside namespace
/// reprise.
std::vector<std::string> foreign_symbols(std::string_view listing);
/// Returns the listed symbols of namespace reprise that contain a word not found in `headers`,
/// which is the text of all public headers.
std::vector<std::string> undeclared_symbols(std::string_view listing, const std::string& headers);

/// Returns the enumerators of `enum class Code` in the header's text. Each includes the name of the
/// enum, as in "Code::kUsage".
std::vector<std::string> public_codes(std::string_view header);
/// Returns the codes of `scope` that the source file throws, reports or returns. `scope` is a
/// namespace or enum, such as "Code" or "passed_on". Leaves out codes that are only used in
/// comparisons.
std::set<std::string> said_codes(std::string_view source, const std::string& scope);

}  // namespace reprise::border
