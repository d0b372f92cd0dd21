// Tests the counts of a diff: by kind, by group of keys, and the prefix that one side's keys lack.

#include "core/diff/diff_summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(DiffSummary, numbers_that_stand_alone_leave_a_key) {
  const std::pair<const char*, const char*> rows[] = {
      {"layers.12.linear_fc1.weight", "layers.*.linear_fc1.weight"},
      {"rng_state/shard_0.1_2.4", "rng_state/shard_*.*_*.*"},
      {"7", "*"},
      {"optimizer.dp_group_idx_10.exp_avg", "optimizer.dp_group_idx_*.exp_avg"},
      {"2d.x2y.v3", "2d.x2y.v3"},
      {"a.0", "a.*"},
      {"", ""},
  };
  for (const auto& [key, pattern] : rows) EXPECT_EQ(without_numbers(key), pattern);
}

TensorDiff tensor(const std::string& key, DiffVerdict verdict, double delta = 0) {
  TensorDiff diff{.key = key, .verdict = verdict};
  diff.comparison = {.elements = 4, .bit_mismatches = delta == 0 ? 0U : 1U, .max_delta = delta};
  return diff;
}

TEST(DiffSummary, rows_are_counted_by_kind_and_by_what_they_are_about) {
  DiffReport report;
  report.tensors = {tensor("a", DiffVerdict::kDifferent, 1),
                    tensor("b", DiffVerdict::kDifferent, 1), tensor("c", DiffVerdict::kDtype)};
  report.objects = {{.key = "common_state", .verdict = DiffVerdict::kDifferent},
                    {.key = "common_state['args']", .verdict = DiffVerdict::kNotComparable},
                    {.key = "common_stateless", .verdict = DiffVerdict::kSame}};
  report.files = {{.key = "meta.pt", .verdict = DiffVerdict::kOnlyLeft}};
  const DiffCounts counts = counts_of(report);
  EXPECT_EQ(counts.count(DiffVerdict::kDifferent, DiffSubject::kTensors), 2U);
  EXPECT_EQ(counts.count(DiffVerdict::kDtype, DiffSubject::kTensors), 1U);
  EXPECT_EQ(counts.count(DiffVerdict::kDifferent, DiffSubject::kCommonState), 1U);
  EXPECT_EQ(counts.count(DiffVerdict::kNotComparable, DiffSubject::kCommonState), 1U);
  EXPECT_EQ(counts.count(DiffVerdict::kSame, DiffSubject::kObjects), 1U);
  EXPECT_EQ(counts.count(DiffVerdict::kOnlyLeft, DiffSubject::kFiles), 1U);
  EXPECT_EQ(counts.count(DiffVerdict::kShape, DiffSubject::kTensors), 0U);
  EXPECT_FALSE(counts.rows.contains(DiffVerdict::kShape));
}

TEST(DiffSummary, a_group_has_its_keys_by_kind_and_the_largest_delta) {
  DiffReport report;
  report.tensors = {tensor("layers.0.w", DiffVerdict::kDifferent, 0.5),
                    tensor("layers.10.w", DiffVerdict::kDifferent, 2),
                    tensor("layers.2.w", DiffVerdict::kSame), tensor("b", DiffVerdict::kSame)};
  const auto groups = groups_of(report);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].pattern, "b");
  EXPECT_TRUE(groups[0].all_same());
  EXPECT_EQ(groups[1].pattern, "layers.*.w");
  EXPECT_EQ(groups[1].keys, 3U);
  EXPECT_EQ(groups[1].verdicts.at(DiffVerdict::kDifferent), 2U);
  EXPECT_EQ(groups[1].verdicts.at(DiffVerdict::kSame), 1U);
  EXPECT_EQ(groups[1].comparison.max_delta, 2);
  EXPECT_EQ(groups[1].comparison.bit_mismatches, 2U);
  EXPECT_FALSE(groups[1].all_same());
}

struct HintRow {
  const char* name;
  std::vector<std::string> only_left;
  std::vector<std::string> only_right;
  std::optional<PrefixHint> hint;
};

TEST(DiffSummary, a_prefix_is_suggested_if_it_matches_half_of_the_unmatched) {
  using Side = PrefixHint::Side;
  const std::vector<HintRow> rows = {
      {"left", {"model.a", "model.b.c"}, {"a", "b.c"}, PrefixHint{Side::kLeft, "model.", 2}},
      {"right", {"a", "b"}, {"net/x.a", "net/x.b"}, PrefixHint{Side::kRight, "net/x.", 2}},
      {"the most frequent",
       {"m.a", "m.b", "n.c"},
       {"a", "b", "c"},
       PrefixHint{Side::kLeft, "m.", 2}},
      {"one key is chance", {"m.a"}, {"a"}, std::nullopt},
      {"parts of a name", {"modela", "modelb"}, {"a", "b"}, std::nullopt},
      {"too few", {"m.a", "m.b", "c", "d", "e"}, {"a", "b", "f", "g", "h"}, std::nullopt},
      {"nothing", {}, {"a", "b"}, std::nullopt},
  };
  for (const HintRow& row : rows) {
    DiffReport report;
    for (const auto& key : row.only_left) {
      report.tensors.push_back(tensor(key, DiffVerdict::kOnlyLeft));
    }
    for (const auto& key : row.only_right) {
      report.objects.push_back({.key = key, .verdict = DiffVerdict::kOnlyRight});
    }
    report.tensors.push_back(tensor("m.same", DiffVerdict::kSame));
    const auto hint = prefix_hint(report);
    ASSERT_EQ(hint.has_value(), row.hint.has_value()) << row.name;
    if (!hint) continue;
    EXPECT_EQ(hint->longer, row.hint->longer) << row.name;
    EXPECT_EQ(hint->prefix, row.hint->prefix) << row.name;
    EXPECT_EQ(hint->keys, row.hint->keys) << row.name;
  }
}

}  // namespace
}  // namespace reprise
