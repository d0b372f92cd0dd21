#include "cli/output/json_text.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace reprise::cli {
namespace {

using Json = nlohmann::json;

std::uint32_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool is_half_at(std::string_view text, std::size_t at) {
  return at + 2 < text.size() && byte_at(text, at) == 0xED && byte_at(text, at + 1) >= 0xA0 &&
         byte_at(text, at + 1) <= 0xBF && (byte_at(text, at + 2) & 0xC0U) == 0x80;
}

std::string escape_of(std::uint32_t unit) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string escape = "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) escape += kHex[(unit >> shift) & 0xFU];
  return escape;
}

std::string with_halves_spelled(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (is_half_at(text, at)) {
      out += escape_of(0xD000U | ((byte_at(text, at + 1) & 0x3FU) << 6U) |
                       (byte_at(text, at + 2) & 0x3FU));
      at += 2;
    } else {
      out += text[at];
    }
  }
  return out;
}

void spell_halves(Json& json) {
  if (json.is_string()) {
    auto& text = json.get_ref<std::string&>();
    if (text.find('\xED') != std::string::npos) text = with_halves_spelled(text);
  } else if (json.is_array()) {
    for (auto& each : json) spell_halves(each);
  } else if (json.is_object()) {
    Json object = Json::object();
    for (auto& [key, value] : json.get_ref<Json::object_t&>()) {
      spell_halves(value);
      object[with_halves_spelled(key)] = std::move(value);
    }
    json = std::move(object);
  }
}

}  // namespace

std::string json_text(Json document) {
  spell_halves(document);
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace reprise::cli
