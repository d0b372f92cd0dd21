#include "reports/pages/escape.hpp"

#include "core/base/printable.hpp"

namespace reprise::reports {
namespace {

/// Replaces each character that stands in `special` by the result of `replacement`.
template <class Replacement>
std::string replaced(std::string_view text, std::string_view special, Replacement replacement) {
  std::string out;
  out.reserve(text.size());
  for (const char letter : text) {
    if (special.find(letter) == std::string_view::npos) {
      out += letter;
    } else {
      out += replacement(letter);
    }
  }
  return out;
}

/// Returns a character reference. It stands for the character as text, never as a part of the
/// medium's syntax.
std::string reference(char letter) { return "&#" + std::to_string(static_cast<int>(letter)) + ";"; }

std::string percent(char letter) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto code = static_cast<unsigned char>(letter);
  return {'%', kDigits[code >> 4U], kDigits[code & 15U]};
}

}  // namespace

std::string in_html(std::string_view text) {
  return replaced(printable(text, LineBreaks::kKept), "&<>\"'", reference);
}

std::string in_annotation(std::string_view text) {
  return printable(replaced(text, "%\r\n", percent));
}

std::string in_annotation_property(std::string_view text) {
  return printable(replaced(text, "%\r\n:,", percent));
}

std::string clipped(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  std::size_t end = bytes_max;
  const auto continues = [&] { return (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80; };
  while (end > 0 && continues()) --end;
  return std::string(text.substr(0, end)) + "\xe2\x80\xa6";
}

}  // namespace reprise::reports
