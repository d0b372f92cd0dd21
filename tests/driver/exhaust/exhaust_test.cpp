// Tests that all pairs of small layouts are loaded and compared, that a wrong pair is reported, and
// that pairs that did not run are not counted.

#include "driver/exhaust/exhaust.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "driver/exhaust/layout_space.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;

std::string told(const ExhaustResult& result) {
  std::string text;
  for (const auto& failure : result.failures) {
    text += failure.pair + ": " + failure.code + ": " + failure.what + "\n";
  }
  return text;
}

TEST(Exhaust, loads_every_pair_of_layouts_of_up_to_four_ranks) {
  const auto result = exhaust({.world_max = 4, .jobs = 2});
  EXPECT_EQ(verdict_of(result), Verdict::kPass) << told(result);
  EXPECT_EQ(result.layouts, 67U);
  EXPECT_EQ(result.planned, 67U * 67U);
  EXPECT_EQ(result.same, 67U * 67U);
  EXPECT_GE(result.tensors, 40U);
  EXPECT_GE(result.objects_least, 8U);
  EXPECT_GT(result.elements, 67U * 67U * 1000U);
  EXPECT_GT(result.left, 0U);
}

TEST(Exhaust, loads_under_the_other_shardings) {
  for (const auto sharding :
       {sim::Sharding::kFullyShardedModelSpace, sim::Sharding::kFsdpDtensor}) {
    const auto result = exhaust(
        {.world_max = 2, .cuts = DpCuts::kCopiesAndShards, .subject = {.sharding = sharding}});
    EXPECT_EQ(verdict_of(result), Verdict::kPass) << name_of(sharding) << '\n' << told(result);
    EXPECT_EQ(result.same, result.planned) << name_of(sharding);
  }
}

TEST(Exhaust, loads_every_pair_of_layouts_with_copies_of_dp) {
  const auto result = exhaust({.world_max = 3, .cuts = DpCuts::kCopiesAndShards, .jobs = 2});
  EXPECT_EQ(verdict_of(result), Verdict::kPass) << told(result);
  EXPECT_EQ(result.layouts, layouts_up_to(3, DpCuts::kCopiesAndShards).size());
  EXPECT_GT(result.layouts, layouts_up_to(3).size());
  EXPECT_EQ(result.same, result.layouts * result.layouts);
}

TEST(Exhaust, counts_refusals_that_the_rule_demands) {
  const auto layouts = layouts_up_to(3, DpCuts::kCopiesAndShards);
  std::uint64_t other_parts = 0;
  for (const auto& a : layouts) {
    for (const auto& b : layouts) {
      const bool same = a.tp == b.tp && a.pp == b.pp && a.etp == b.etp && a.ep == b.ep;
      if (!same) ++other_parts;
    }
  }
  const auto result = exhaust({.world_max = 3,
                               .cuts = DpCuts::kCopiesAndShards,
                               .subject = {.sharding = sim::Sharding::kDpReshardable}});
  EXPECT_EQ(verdict_of(result), Verdict::kPass) << told(result);
  EXPECT_EQ(result.refused,
            (std::map<std::string, std::uint64_t>{{"LAYOUT_MISMATCH", other_parts}}));
  EXPECT_EQ(result.same + other_parts, result.planned);
}

TEST(Exhaust, names_pair_rank_key_and_element_of_a_wrong_load) {
  const auto result = exhaust({.world_max = 2, .mutant = "dtype-cast-on-load"});
  ASSERT_EQ(verdict_of(result), Verdict::kFail);
  ASSERT_FALSE(result.failures.empty());
  const auto& first = result.failures.front();
  EXPECT_NE(first.pair.find(" -> "), std::string::npos) << first.pair;
  EXPECT_NE(first.what.find("rank "), std::string::npos) << first.what;
  EXPECT_NE(first.what.find("fp32_param"), std::string::npos) << first.what;
  EXPECT_NE(first.what.find("element ["), std::string::npos) << first.what;
}

TEST(Exhaust, parts_make_the_whole) {
  const auto whole = exhaust({.world_max = 3});
  const ExhaustRequest first{.world_max = 3, .part = 1, .parts = 2};
  const ExhaustRequest second{.world_max = 3, .part = 2, .parts = 2};
  const auto one = exhaust(first);
  const auto two = exhaust(second);
  EXPECT_LT(one.planned, whole.planned);
  EXPECT_EQ(one.planned + two.planned, whole.planned);
  EXPECT_EQ(one.same + two.same, whole.same);
  EXPECT_EQ(one.elements + two.elements, whole.elements);
  EXPECT_EQ(one.objects + two.objects, whole.objects);
  auto report = reported(first, one);
  EXPECT_FALSE(flaws_of(report).empty()) << "one part passes for the whole";
  put_part(report, reported(second, two).parts.front());
  EXPECT_TRUE(flaws_of(report).empty()) << flaws_of(report).front();
  EXPECT_EQ(report.passed(), whole.planned);
}

TEST(Exhaust, is_inconclusive_if_interrupted) {
  std::atomic<int> asked = 0;
  ExhaustRequest request{.world_max = 2};
  request.interrupted = [&asked] { return ++asked > 40; };
  const auto result = exhaust(request);
  EXPECT_TRUE(result.interrupted);
  EXPECT_LT(result.passed(), result.planned);
  EXPECT_EQ(verdict_of(result), Verdict::kInconclusive);
}

TEST(Exhaust, is_inconclusive_if_the_mutant_is_never_asked) {
  const auto result = exhaust({.world_max = 1, .mutant = "commit-not-polled"});
  EXPECT_TRUE(result.unasked);
  EXPECT_EQ(verdict_of(result), Verdict::kInconclusive);
}

}  // namespace
}  // namespace reprise::driver
