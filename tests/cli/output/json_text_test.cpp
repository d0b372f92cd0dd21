#include "cli/output/json_text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace reprise::cli {
namespace {

using Json = nlohmann::json;

TEST(JsonText, halves_of_characters_are_spelled) {
  const Json document = Json::object({{"low\xED\xB3\xBF", "high\xED\xA0\x80"}});
  EXPECT_EQ(json_text(document), "{\n  \"low\\\\udcff\": \"high\\\\ud800\"\n}\n");
  EXPECT_EQ(Json::parse(json_text(document)), Json::object({{"low\\udcff", "high\\ud800"}}));
}

TEST(JsonText, keys_that_differ_in_a_half_stay_apart) {
  const Json document = Json::array({Json::object({{"k\xED\xB3\xBF", 1}, {"k\xED\xB3\xBE", 2}})});
  EXPECT_EQ(Json::parse(json_text(document)),
            Json::array({Json::object({{"k\\udcff", 1}, {"k\\udcfe", 2}})}));
}

TEST(JsonText, everything_else_reads_back_as_it_was) {
  const Json document = Json::object({{"plain", "text"},
                                      {"delete\x7F", "\\u007f"},
                                      {"korean", "\xED\x95\x9C"},  // UTF-8 that begins with 0xED
                                      {"list", Json::array({1, 2.5, nullptr, true, "\x1b[2K"})}});
  const std::string text = json_text(document);
  EXPECT_EQ(Json::parse(text), document) << text;
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < '\x7f')) << text;
}

TEST(JsonText, other_bytes_that_are_no_text_are_replaced) {
  EXPECT_EQ(json_text(Json("a\xFF\xED")), "\"a\\ufffd\\ufffd\"\n");
}

}  // namespace
}  // namespace reprise::cli
