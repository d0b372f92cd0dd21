#include "core/plan/strictness.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

struct Row {
  Strictness mode;
  const char* name;
  const char* refused_on;  ///< "", "u" (unexpected), "mu"
  std::size_t lines;       ///< logged if both sides differ
  const char* returned;
  bool drops;
};

constexpr Row kRows[] = {
    {Strictness::kAssumeOkUnexpected, "assume_ok_unexpected", "", 0, "", false},
    {Strictness::kLogUnexpected, "log_unexpected", "", 1, "", true},
    {Strictness::kLogAll, "log_all", "", 2, "", true},
    {Strictness::kRaiseUnexpected, "raise_unexpected", "u", 1, "", false},
    {Strictness::kRaiseAll, "raise_all", "mu", 2, "", false},
    {Strictness::kReturnUnexpected, "return_unexpected", "", 0, "u", true},
    {Strictness::kReturnAll, "return_all", "", 0, "mu", true},
    {Strictness::kIgnoreAll, "ignore_all", "", 0, "", true},
};

bool names(const char* sides, char side) {
  return std::string_view(sides).find(side) != std::string_view::npos;
}

TEST(Strictness, each_mode_does_what_its_name_says) {
  const std::vector<std::string> m = {"old.weight"};
  const std::vector<std::string> u = {"new.weight", "new.bias"};
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    const auto both = judge(row.mode, {m, u});
    EXPECT_EQ(both.log.size(), row.lines);
    EXPECT_EQ(both.drop_unexpected, row.drops);
    EXPECT_EQ(both.returned.missing, names(row.returned, 'm') ? m : std::vector<std::string>{});
    EXPECT_EQ(both.returned.unexpected, names(row.returned, 'u') ? u : std::vector<std::string>{});
    EXPECT_EQ(judge(row.mode, {m, {}}).refuse, names(row.refused_on, 'm'));
    EXPECT_EQ(judge(row.mode, {{}, u}).refuse, names(row.refused_on, 'u'));
    EXPECT_EQ(both.refuse, *row.refused_on != 0);
    EXPECT_FALSE(judge(row.mode, {}).refuse);
    EXPECT_TRUE(judge(row.mode, {}).log.empty());
  }
}

TEST(Strictness, names_are_those_of_the_field_and_go_both_ways) {
  for (const Row& row : kRows) {
    EXPECT_EQ(name_of(row.mode), row.name);
    EXPECT_EQ(strictness_named(row.name), row.mode);
  }
  EXPECT_FALSE(strictness_named("raise_everything"));
}

TEST(Strictness, lines_name_the_keys_and_which_side_lacks_them) {
  const auto verdict = judge(Strictness::kLogAll, {{"a"}, {"b", "c"}});
  EXPECT_EQ(verdict.log[0], "1 key in the checkpoint, but not requested: a");
  EXPECT_EQ(verdict.log[1], "2 keys requested, but not in the checkpoint: b, c");
}

TEST(Strictness, a_long_list_is_cut_and_counted) {
  const auto verdict = judge(Strictness::kLogAll, {std::vector<std::string>(1000, "k"), {}});
  EXPECT_LT(verdict.log[0].size(), 200U);
  EXPECT_NE(verdict.log[0].find("and 980 more"), std::string::npos);
}

}  // namespace
}  // namespace reprise
