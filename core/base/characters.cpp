#include "core/base/characters.hpp"

#include <algorithm>

namespace reprise {
namespace {

/// True for the first byte of a character, false for those that follow it.
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }

}  // namespace

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string_view first_characters(std::string_view text, std::size_t count) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (begins_character(text[at]) && count-- == 0) return text.substr(0, at);
  }
  return text;
}

std::string_view last_characters(std::string_view text, std::size_t count) {
  const std::size_t all = characters_in(text);
  return count >= all ? text : text.substr(first_characters(text, all - count).size());
}

}  // namespace reprise
