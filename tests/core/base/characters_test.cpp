#include "core/base/characters.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(Characters, are_counted_and_cut_whole) {
  struct Row {
    std::string_view text;
    std::size_t count;
    std::string_view first_two;
    std::string_view last_two;
  };
  const Row rows[] = {{"", 0, "", ""},
                      {"a", 1, "a", "a"},
                      {"abc", 3, "ab", "bc"},
                      {"\xc3\xa4z\xe2\x86\x92", 3, "\xc3\xa4z", "z\xe2\x86\x92"},
                      {"\xf0\x9f\x98\x80\xc3\xa4z", 3, "\xf0\x9f\x98\x80\xc3\xa4", "\xc3\xa4z"}};
  for (const auto& row : rows) {
    EXPECT_EQ(characters_in(row.text), row.count) << row.text;
    EXPECT_EQ(first_characters(row.text, 2), row.first_two) << row.text;
    EXPECT_EQ(last_characters(row.text, 2), row.last_two) << row.text;
    EXPECT_EQ(first_characters(row.text, 9), row.text);
    EXPECT_EQ(last_characters(row.text, 9), row.text);
    EXPECT_EQ(first_characters(row.text, 0), "");
    EXPECT_EQ(last_characters(row.text, 0), "");
  }
}

}  // namespace
}  // namespace reprise
