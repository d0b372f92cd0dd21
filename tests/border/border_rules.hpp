#pragma once
// Rules over the text of a public header, and over what a shared library exports.

#include <string>
#include <string_view>
#include <vector>

namespace reprise::border {

/// Includes that are neither a public header nor one of the standard library; as written.
std::vector<std::string> foreign_includes(std::string_view text);
/// Macros that the text defines without REPRISE_ in front; their names.
std::vector<std::string> foreign_macros(std::string_view text);
/// Namespaces that the text opens at the outside and that are not reprise (nor std, for a hash).
std::vector<std::string> foreign_namespaces(std::string_view text);
/// Words of the harness, which mean nothing to a program outside; as written.
std::vector<std::string> foreign_words(std::string_view text);
/// Symbols of a listing (`nm -D --defined-only -C`) that are not of reprise; whole lines.
std::vector<std::string> foreign_symbols(std::string_view listing);
/// Symbols of reprise in a listing whose qualified name has a word that `headers`, all of their
/// text, lack.
std::vector<std::string> undeclared_symbols(std::string_view listing, const std::string& headers);

}  // namespace reprise::border
