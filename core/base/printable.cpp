#include "core/base/printable.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace reprise {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

struct Letter {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  ///< length in bytes; 0 if the text is not valid UTF-8
};

/// Decodes the first character. Lone surrogates are accepted, because Python's pickler writes them.
Letter first_letter(std::string_view text) {
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc0 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80) return {};
    code = code << 6U | (next & 0x3fU);
  }
  return code < kLeast.at(bytes) || code > 0x10ffff ? Letter{} : Letter{code, bytes};
}

bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

/// True for Unicode direction marks and overrides, line separators, surrogates and noncharacters.
bool is_deceptive(std::uint32_t code) {
  const auto within = [code](std::uint32_t first, std::uint32_t last) {
    return code >= first && code <= last;
  };
  return code == 0x61c || within(0x200e, 0x200f) || within(0x2028, 0x202e) ||
         within(0x2066, 0x2069) || within(0xd800, 0xdfff) || within(0xfffe, 0xffff);
}

void put_digits(std::string& out, std::string_view prefix, std::uint32_t value, unsigned digits) {
  out += prefix;
  while (digits-- > 0) out += kDigits[value >> (4 * digits) & 15U];
}

}  // namespace

std::string printable(std::string_view text, LineBreaks breaks) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    const std::size_t bytes = letter.bytes == 0 ? 1 : letter.bytes;
    if (letter.code == '\n') {
      out += breaks == LineBreaks::kKept ? "\n" : "\\n";
    } else if (letter.bytes == 0) {
      put_digits(out, "\\x", static_cast<unsigned char>(text.front()), 2);
    } else if (is_control(letter.code)) {
      put_digits(out, "\\x", letter.code, 2);
    } else if (is_deceptive(letter.code)) {
      put_digits(out, "\\u", letter.code, 4);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace reprise
