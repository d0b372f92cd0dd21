#include "reports/pages/html.hpp"

#include <algorithm>

#include "core/base/bytes.hpp"
#include "core/base/sha256.hpp"
#include "reports/pages/escape.hpp"

namespace reprise::reports {

// The build makes them of page.css and page.js.
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

namespace {

/// Returns a source for a content security policy: the digest of the text in base 64.
std::string source_of(std::string_view text) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const auto byte : sha256_of(as_bytes(text))) {
    bits = bits << 8U | std::to_integer<std::uint32_t>(byte);
    for (count += 8; count >= 6; count -= 6) out += kLetters[bits >> (count - 6) & 63U];
  }
  // 32 bytes leave four bits, which become a letter of their own and one sign that fills up.
  return "'sha256-" + out + kLetters[bits << (6 - count) & 63U] + "='";
}

}  // namespace

std::string page_html(const std::string& title, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
         "data:; style-src " +
         source_of(kPageStyle) + "; script-src " + source_of(kPageScript) +
         "; base-uri 'none'; form-action 'none'\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" +
         in_html(title) + "</title>\n<style>" + std::string(kPageStyle) +
         "</style>\n</head>\n<body>\n" + body + "<script>" + std::string(kPageScript) +
         "</script>\n</body>\n</html>\n";
}

std::string verdict_html(std::string_view verdict) {
  std::string word(verdict);
  std::ranges::replace(word, '_', ' ');
  const std::string first = word.substr(0, word.find_first_of(" :"));
  const char* sign = first == "pass"           ? "\xe2\x9c\x93"
                     : first == "not"          ? "\xe2\x80\x93"
                     : first == "inconclusive" ? "?"
                                               : "\xe2\x9c\x97";
  return "<span class=\"v " + in_html(first) + "\"><span aria-hidden=\"true\">" + sign +
         "</span> " + in_html(word) + "</span>";
}

std::string cell_html(std::string_view text) { return "<td>" + in_html(text) + "</td>"; }

std::string count_html(std::string_view number) {
  return "<td class=\"n\">" + in_html(number) + "</td>";
}

std::string table_head(const std::vector<std::string>& columns, std::string_view look) {
  std::string out = "<div class=\"scroll\"><table class=\"" + std::string(look) + "\"><thead><tr>";
  for (const auto& column : columns) out += "<th scope=\"col\">" + in_html(column) + "</th>";
  return out + "</tr></thead><tbody>\n";
}

}  // namespace reprise::reports
