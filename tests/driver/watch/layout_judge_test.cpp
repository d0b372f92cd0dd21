// Tests what ranks hold together, and how it is compared under another layout.
#include "driver/watch/layout_judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "driver/watch/watch_result.hpp"

namespace reprise::driver {
namespace {

/// One rank, with what the hook tells of each of its steps.
struct Rank {
  std::vector<std::string> whole;              ///< of param.w after step 0, 1, ...
  std::vector<std::vector<std::string>> rows;  ///< of step 1, 2, ...
};

LifeRecording life_of(const std::vector<Rank>& ranks) {
  LifeRecording life;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    RankRecording own{.rank = static_cast<std::int64_t>(r), .whole = true};
    for (std::size_t step = 0; step < ranks[r].whole.size(); ++step) {
      own.held.push_back(
          {.step = static_cast<std::int64_t>(step),
           .names = {{"param.w", "#float32[4]:0"}, {"rng.torch", "#u[1]:" + std::to_string(r)}},
           .wholes = {{"param.w", ranks[r].whole[step]}}});
    }
    for (std::size_t step = 0; step < ranks[r].rows.size(); ++step) {
      own.steps[static_cast<std::int64_t>(step + 1)] = {.rows = ranks[r].rows[step]};
    }
    life.ranks.emplace(own.rank, own);
  }
  return life;
}

std::string half(int which, const std::string& digest) {
  return "float32[8]@" + std::to_string(which * 4) + "+4:" + digest;
}
std::string all(const std::string& digest) { return "float32[8]@0+8:" + digest; }

TEST(Layouts, parts_add_up_and_copies_count_once) {
  const auto value = [](const std::vector<std::string>& wholes) {
    std::vector<Rank> ranks;
    for (const auto& whole : wholes) ranks.push_back({.whole = {whole}});
    const WholeValue found = wholes_at(life_of(ranks), 0).at("param.w");
    return found.why.empty() ? found.value : found.why;
  };
  EXPECT_EQ(value({half(0, "1"), half(1, "f")}), "#float32[8]:0000000000000010");
  EXPECT_EQ(value({half(0, "1"), half(0, "1"), half(1, "f")}), "#float32[8]:0000000000000010");
  EXPECT_EQ(value({half(0, "ffffffffffffffff"), half(1, "2")}), "#float32[8]:0000000000000001");
  EXPECT_EQ(value({all("5"), all("5")}), "#float32[8]:0000000000000005");
  EXPECT_EQ(value({"float32[8]@0+2|4+6:7", "float32[8]@:0"}), "#float32[8]:0000000000000007");
  EXPECT_EQ(value({all("5"), all("6")}), "ranks have the same part with different content");
  EXPECT_EQ(value({half(0, "1"), half(0, "1")}), "ranks hold 4 elements of 8");
  EXPECT_EQ(value({half(0, "1"), "float32[9]@4+4:1"}), "ranks have it in different shapes");
  EXPECT_EQ(value({half(0, "1"), ""}), "ranks have it in different shapes");
}

struct Case {
  const char* name;
  std::vector<Rank> resumed;
  std::int64_t from;
  std::vector<std::string> told;
};

std::ostream& operator<<(std::ostream& out, const Case& row) { return out << row.name; }

class OtherLayout : public testing::TestWithParam<Case> {};

TEST_P(OtherLayout, is_compared) {
  const LifeRecording a =
      life_of({{.whole = {half(0, "1"), half(0, "2"), half(0, "3"), half(0, "4")},
                .rows = {{"a"}, {"b"}, {"c"}}},
               {.whole = {half(1, "0"), half(1, "0"), half(1, "0"), half(1, "0")},
                .rows = {{"A"}, {"B"}, {"C"}}}});
  const LifeRecording c = life_of(GetParam().resumed);
  const std::set<std::string> noise;
  const ResumedLife lives{.uninterrupted = a, .killed = a, .resumed = c, .noise = noise};
  EXPECT_EQ(continues_whole_from(lives), GetParam().from);
  WatchJudgement judgement;
  std::vector<std::string> told;
  for (const auto& finding : compare_layouts(lives, 2, judgement)) {
    told.push_back(std::string(finding.severity == Severity::kFail ? "FAIL " : "") +
                   text_of(finding));
  }
  EXPECT_EQ(told, GetParam().told);
  EXPECT_TRUE(judgement.not_judged.contains("random states, samplers, loaders"));
}

INSTANTIATE_TEST_SUITE_P(
    Table, OtherLayout,
    testing::Values(
        Case{"whole", {{.whole = {all("3")}, .rows = {{"c", "C"}}}}, 2, {}},
        Case{"stale",
             {{.whole = {all("2")}, .rows = {{"C", "c"}}}},
             1,
             {"FAIL param.w on rank 0: as after step 1"}},
        Case{"fresh",
             {{.whole = {all("1")}, .rows = {{"c", "C"}}}},
             0,
             {"FAIL param.w on rank 0: as in a new process"}},
        Case{"wrong",
             {{.whole = {all("9")}, .rows = {{"c", "C"}}}},
             0,
             {"FAIL param.w on rank 0: with other content"}},
        Case{"copies",
             {{.whole = {all("3")}, .rows = {{"c"}}}, {.whole = {all("9")}, .rows = {{"C"}}}},
             0,
             {"FAIL param.w on ranks 0, 1: ranks have the same part with different content"}},
        Case{"again",
             {{.whole = {all("3")}, .rows = {{"a", "A"}}}},
             2,
             {"FAIL step 3: takes the data of step 1 again"}},
        Case{"dealt",
             {{.whole = {all("3")}, .rows = {{"a", "C"}}}},
             2,
             {"step 3: takes other data, as a sampler may that deals them out another way"}},
        Case{"batch",
             {{.whole = {all("3")}, .rows = {{"c"}}}},
             2,
             {"step 3: takes 1 row, not 2: give the other layout the same batch in all"}},
        Case{"unknown",
             {{.whole = {half(0, "3")}, .rows = {{"c", "C"}}}},
             0,
             {"param.w: can't be compared under another layout: ranks hold 4 elements of 8"}}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace reprise::driver
