#include "core/plan/strictness.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

struct Row {
  Strictness mode;
  const char* name;
  /// Contains "s" if the load refuses requested keys that are not stored, and "r" if it refuses
  /// stored keys that are not requested.
  const char* refused_on;
  std::size_t lines;  ///< number of lines logged if both sides differ
  const char* returned;
  bool drops;
};

constexpr Row kRows[] = {
    {Strictness::kAssumeOkUnexpected, "assume_ok_unexpected", "", 0, "", false},
    {Strictness::kLogUnexpected, "log_unexpected", "", 1, "", true},
    {Strictness::kLogAll, "log_all", "", 2, "", true},
    {Strictness::kRaiseUnexpected, "raise_unexpected", "s", 1, "", false},
    {Strictness::kRaiseAll, "raise_all", "rs", 2, "", false},
    {Strictness::kReturnUnexpected, "return_unexpected", "", 0, "s", true},
    {Strictness::kReturnAll, "return_all", "", 0, "rs", true},
    {Strictness::kIgnoreAll, "ignore_all", "", 0, "", true},
};

bool names(const char* sides, char side) {
  return std::string_view(sides).find(side) != std::string_view::npos;
}

TEST(Strictness, each_mode_does_what_its_name_says) {
  const std::vector<std::string> not_requested = {"old.weight"};
  const std::vector<std::string> not_stored = {"new.weight", "new.bias"};
  const std::vector<std::string> none;
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    const auto both = judge(row.mode, {not_requested, not_stored});
    EXPECT_EQ(both.log.size(), row.lines);
    EXPECT_EQ(both.drop_not_stored, row.drops);
    EXPECT_EQ(both.returned.not_requested, names(row.returned, 'r') ? not_requested : none);
    EXPECT_EQ(both.returned.not_stored, names(row.returned, 's') ? not_stored : none);
    EXPECT_EQ(judge(row.mode, {not_requested, {}}).refuse, names(row.refused_on, 'r'));
    EXPECT_EQ(judge(row.mode, {{}, not_stored}).refuse, names(row.refused_on, 's'));
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

TEST(Strictness, lines_name_a_modules_settings_as_its_state_dict_does_too) {
  const std::string key = "mimo.a.optimizer.mimo.a.grad_scaler/shard_0_1";
  const auto verdict = judge(Strictness::kReturnAll, {{}, {key}});
  EXPECT_EQ(verdict.returned.not_stored.front(), key) << "returned keys must stay keys";
  EXPECT_EQ(
      judge(Strictness::kLogAll, {{}, {key}}).log.front(),
      "1 key requested, but not in the checkpoint: " + key + " (_mimo_grad_scaler of module a)");
}

}  // namespace
}  // namespace reprise
