#include "cli/keys/key_pattern.hpp"

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

using testing::HasSubstr;

std::string refused(const std::string& pattern) {
  try {
    const KeyPattern taken(pattern, "--keys");
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUsage) << pattern;
    return error.message();
  }
}

TEST(KeyPattern, matches_long_keys_whatever_the_expression) {
  // A matcher that backtracks needs 2^4096 steps for these.
  const std::string key(4096, 'a');
  for (const char* pattern :
       {"(a*)*b", "(a|a)*b", "(a+)+$b", "(.*)*(.*)*[^a]", "(a?){500}a{500}b"}) {
    EXPECT_FALSE(KeyPattern(pattern, "--keys").found_in(key)) << pattern;
    EXPECT_EQ(KeySubstitution(pattern, "x", Matches::kAll, "--rename").applied_to(key), key);
  }
  EXPECT_TRUE(KeyPattern("ab$", "--keys").found_in(key + "b"));
}

TEST(KeyPattern, what_is_not_supported_is_refused_with_its_place) {
  const std::pair<const char*, int> rows[] = {
      {"(?=x)y", 1},  {"a(?!b)", 2},      {"[(?=]a(?=b)", 7}, {"((?<=x)y)", 2},
      {"(x)\\1", 4},  {"((x)(y)\\2)", 8}, {"ab(c", 3},        {"(a)(b", 4},
      {"a)b", 2},     {"a**", 2},         {"ab[z-a]", 4},     {"a{2,1}", 2},
      {"a{1001}", 2}, {"ab\\", 3},        {"(", 1},           {"[", 1},
  };
  for (const auto& [pattern, place] : rows) {
    EXPECT_THAT(refused(pattern) + ";", HasSubstr("at character " + std::to_string(place) + ";"))
        << pattern;
  }
  EXPECT_THAT(refused("(x)\\1"), HasSubstr("backreferences"));
  EXPECT_THAT(refused("x(?=y)"), HasSubstr("lookaround"));
}

TEST(KeySubstitution, takes_the_signs_of_sed_and_of_javascript) {
  const std::pair<const char*, const char*> rows[] = {
      {"\\2.\\1", "0.layers"},
      {"$2.$1", "0.layers"},
      {"[&]", "[layers.0]"},
      {"[$&]", "[layers.0]"},
      {"\\&$$", "&$"},
      {"\\$1", "$1"},
      {"a\\\\b", "a\\b"},
      {"$", "$"},
      {"$x", "$x"},
      {"x\\", "x\\"},
      {"$10", "layers0"},
      {"\\0", "0"},
  };
  for (const auto& [text, becomes] : rows) {
    const KeySubstitution rule("(layers)\\.([0-9])", text, Matches::kFirst, "--rename");
    EXPECT_EQ(rule.applied_to("layers.0.w"), std::string(becomes) + ".w") << text;
  }
}

TEST(KeySubstitution, replaces_one_match_or_all) {
  EXPECT_EQ(KeySubstitution("a", "b", Matches::kFirst, "").applied_to("aaa"), "baa");
  EXPECT_EQ(KeySubstitution("a", "b", Matches::kAll, "").applied_to("aaa"), "bbb");
  EXPECT_EQ(KeySubstitution("x*", "-", Matches::kAll, "").applied_to("ab"), "-a-b-");
}

TEST(KeySubstitution, a_group_that_the_expression_lacks_is_refused) {
  for (const char* text : {"$1", "\\1", "a$3b", "\\9"}) {
    EXPECT_THROW(KeySubstitution("a", text, Matches::kFirst, "--rename"), Error) << text;
  }
}

}  // namespace
}  // namespace reprise::cli
