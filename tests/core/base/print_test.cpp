#include "core/base/print.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace reprise {
namespace {

TEST(Print, what_is_counted_has_its_noun_in_the_right_number) {
  EXPECT_EQ(counted(0, "scenario"), "0 scenarios");
  EXPECT_EQ(counted(1, "scenario"), "1 scenario");
  EXPECT_EQ(counted(2000, "scenario"), "2,000 scenarios");
}

TEST(Print, bytes_for_people) {
  constexpr std::uint64_t kKi = 1024;
  const std::pair<std::uint64_t, const char*> rows[] = {
      {0, "0 B"},
      {1, "1 B"},
      {1023, "1023 B"},
      {1024, "1.00 KiB"},
      {1536, "1.50 KiB"},
      {kKi * kKi, "1.00 MiB"},
      {kKi * kKi * kKi * 3 / 2, "1.50 GiB"},
      {std::numeric_limits<std::uint64_t>::max(), "16.00 EiB"},
  };
  for (const auto& [bytes, text] : rows) EXPECT_EQ(human_bytes(bytes), text);
}

TEST(Print, counts_get_commas) {
  const std::pair<std::uint64_t, const char*> rows[] = {
      {0, "0"},
      {999, "999"},
      {1000, "1,000"},
      {123456, "123,456"},
      {1234567, "1,234,567"},
      {std::numeric_limits<std::uint64_t>::max(), "18,446,744,073,709,551,615"},
  };
  for (const auto& [count, text] : rows) EXPECT_EQ(with_commas(count), text);
}

TEST(Print, join) {
  EXPECT_EQ(join(std::vector<int>{}, ", "), "");
  EXPECT_EQ(join(std::vector<int>{1}, ", "), "1");
  EXPECT_EQ(join(std::vector<std::string>{"a", "", "b"}, ", "), "a, , b");
}

TEST(EditDistance, by_hand) {
  struct Row {
    const char* a;
    const char* b;
    std::size_t distance;
  };
  const Row rows[] = {
      {"", "", 0},       {"", "abc", 3},           {"abc", "abc", 0},
      {"abc", "abd", 1}, {"abc", "ab", 1},         {"abc", "xabc", 1},
      {"ab", "ba", 2},   {"kitten", "sitting", 3}, {"flaw", "lawn", 2},
  };
  for (const auto& [a, b, distance] : rows) {
    EXPECT_EQ(edit_distance(a, b), distance) << a << " " << b;
    EXPECT_EQ(edit_distance(b, a), distance) << b << " " << a;
  }
}

/// Computes the edit distance by its definition, without a table.
std::size_t slow_distance(std::string_view a, std::string_view b) {
  if (a.empty()) return b.size();
  if (b.empty()) return a.size();
  const std::size_t change = a[0] == b[0] ? 0 : 1;
  return std::min({slow_distance(a.substr(1), b) + 1, slow_distance(a, b.substr(1)) + 1,
                   slow_distance(a.substr(1), b.substr(1)) + change});
}

TEST(EditDistance, of_all_words_of_up_to_four_letters_of_two) {
  std::vector<std::string> words = {""};
  for (std::size_t i = 0; words[i].size() < 4; ++i) {
    for (const char letter : {'a', 'b'}) words.push_back(words[i] + letter);
  }
  for (const auto& a : words) {
    for (const auto& b : words)
      ASSERT_EQ(edit_distance(a, b), slow_distance(a, b)) << a << ' ' << b;
  }
}

TEST(Closest, is_near_or_nothing) {
  const std::vector<std::string> words = {"train", "save", "restart", "exits"};
  const std::pair<const char*, const char*> rows[] = {
      {"trian", "train"}, {"save", "save"}, {"sav", "save"}, {"restrat", "restart"},
      {"exit", "exits"},  {"zzzzz", ""},    {"", ""},        {"checkpoint", ""},
  };
  for (const auto& [word, expected] : rows) EXPECT_EQ(closest(word, words), expected) << word;
  EXPECT_EQ(closest("save", std::vector<std::string>{}), "");
}

TEST(Closest, of_several_equally_near_ones_is_the_first) {
  EXPECT_EQ(closest("cat", std::vector<std::string>{"bat", "hat"}), "bat");
}

}  // namespace
}  // namespace reprise
