#pragma once
// Rules for the text of a public header, and for the exports of a shared library.

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::border {

/// Returns the includes that are neither public headers nor the standard library's; as written.
std::vector<std::string> foreign_includes(std::string_view text);
/// Returns the names of macros that the text defines without the prefix REPRISE_.
std::vector<std::string> foreign_macros(std::string_view text);
/// Returns the top-level namespaces that the text opens except reprise (and std, for a hash).
std::vector<std::string> foreign_namespaces(std::string_view text);
/// Returns words of the harness, which mean nothing to outside programs; as written.
std::vector<std::string> foreign_words(std::string_view text);
/// Returns the lines of a listing (`nm -D --defined-only -C`) with symbols outside of reprise.
std::vector<std::string> foreign_symbols(std::string_view listing);
/// Returns symbols of reprise in a listing whose qualified name has a word that does not occur in
/// `headers`, which is the text of all of them.
std::vector<std::string> undeclared_symbols(std::string_view listing, const std::string& headers);

/// Returns the enumerators of `enum class Code` in the text of its header, with its name:
/// "Code::kUsage".
std::vector<std::string> public_codes(std::string_view header);
/// Returns the codes of that namespace or enum ("Code", "passed_on") that a source says: throws,
/// reports or returns. A source that only compares with a code does not say it.
std::set<std::string> said_codes(std::string_view source, const std::string& scope);

}  // namespace reprise::border
