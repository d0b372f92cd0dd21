#include "core/base/shell_word.hpp"

#include <algorithm>
#include <cctype>

#include "core/base/printable.hpp"

namespace reprise {
namespace {

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
}

/// Writes every byte that is no printable ASCII character as an escape.
std::string escaped_word(std::string_view word) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      text += {'\\', 'x', kHexDigits[byte >> 4U], kHexDigits[byte & 15U]};
    } else {
      if (c == '\'' || c == '\\') text += '\\';
      text += c;
    }
  }
  return text + "'";
}

}  // namespace

std::string shell_word(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  if (printable(word) != word) return escaped_word(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace reprise
