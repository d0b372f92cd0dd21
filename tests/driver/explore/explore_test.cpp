// Tests the search in a world of its own: six lives, in which marks come up by chance, and a
// failure that needs two rare ones after each other.

#include "driver/explore/explore.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "driver/explore/finding.hpp"
#include "driver/explore/marks.hpp"
#include "tests/driver/explore/campaign.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;

constexpr std::uint64_t kFirstOneIn = 4000;  // in one life
constexpr std::uint64_t kSecondOneIn = 400;  // in one life
constexpr std::size_t kOtherMarks = 40;

std::string other_mark(std::size_t number) { return "other " + std::to_string(number); }

std::vector<std::string> toy_marks() {
  std::vector<std::string> marks = {"first", "second", "never"};
  for (std::size_t i = 0; i < kOtherMarks; ++i) marks.push_back(other_mark(i));
  return marks;
}

/// Runs a timeline of a world in which only the seeds of lives matter. A third of the other marks
/// are as rare as the first event of the failure.
TimelineResult run_toy(const Recipe& recipe, const std::string& mutant) {
  TimelineResult seen;
  bool first = false;
  for (std::size_t life = 0; life < kTimelineLives; ++life) {
    Stream random = Stream(recipe.seed_of_life(life)).split("toy").split(life);
    seen.lives.push_back({.decisions = 10, .fibers = 2});
    const auto reach = [&](const std::string& mark) { seen.marks.push_back({mark, life}); };
    const bool second = random.split("second").at(0) % kSecondOneIn == 0;
    if (second) reach("second");
    if (first && second && !mutant.empty()) {
      seen.verdict = Verdict::kFail;
      seen.code = "BIT_MISMATCH";
      seen.reason = "rank " + std::to_string(life) + " differs";
    }
    if (random.split("first").at(0) % kFirstOneIn == 0) {
      first = true;
      reach("first");
    }
    for (std::size_t i = 0; i < kOtherMarks; ++i) {
      const std::uint64_t one_in = i % 3 == 0 ? kFirstOneIn : 10 + i;
      if (random.split("other").split(i).at(0) % one_in == 0) reach(other_mark(i));
    }
  }
  return seen;
}

ExploreRequest toy_request(std::uint64_t seed) {
  ExploreRequest request{.seed = seed};
  request.run = run_toy;
  request.marks = toy_marks();
  return request;
}

ExploreRequest planted(std::uint64_t seed, std::uint64_t runs, bool alone) {
  ExploreRequest request = toy_request(seed);
  request.runs_max = runs;
  request.alone = alone;
  request.mutant = "a failure that needs two events";
  request.first_only = true;
  return request;
}

/// In this world one life in 4,000 has the first event, and one in 400 has the second, which must
/// come later. A third of the marks are as rare as the first event, so the search must share its
/// branches among them.
TEST(Explore, branches_in_5000_timelines_find_more_than_20000_seeds) {
  std::size_t branching = 0;
  std::size_t alone = 0;
  constexpr std::size_t kSearches = 20;
  for (std::uint64_t seed = 1; seed <= kSearches; ++seed) {
    branching += explore(planted(seed, 5000, false)).coverage.findings.empty() ? 0 : 1;
    alone += explore(planted(seed, 20000, true)).coverage.findings.empty() ? 0 : 1;
  }
  RecordProperty("branching", static_cast<int>(branching));
  RecordProperty("alone", static_cast<int>(alone));
  EXPECT_GE(branching, kSearches * 7 / 10) << "of " << kSearches << " searches";
  EXPECT_LE(alone, kSearches * 3 / 10) << "of " << kSearches << " searches";
}

TEST(Explore, a_recipe_shows_the_failure_again) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const auto result = explore(planted(seed, 5000, false));
    if (result.coverage.findings.empty()) continue;
    const auto& finding = result.coverage.findings.front();
    EXPECT_EQ(finding.signature, "BIT_MISMATCH: rank # differs");
    EXPECT_LE(finding.at_run, result.coverage.runs);
    const auto again = run_toy(parse_recipe(finding.recipe), "on");
    EXPECT_EQ(again.verdict, Verdict::kFail);
    EXPECT_EQ(again.reason, finding.reason);
    return;
  }
  FAIL() << "no search found anything";
}

/// So one campaign measures all planted defects at once.
TEST(Explore, the_first_timeline_with_its_pair_finds_a_planted_defect) {
  ExploreRequest request = toy_request(2);
  request.runs_max = 5000;
  std::stringstream text;
  write_campaign(request, text);
  const auto pairs = first_timelines(read_campaign(text));
  const auto first = pairs.find({"first", "second"});
  ASSERT_NE(first, pairs.end());
  const auto findings = explore(planted(2, 5000, false)).coverage.findings;
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings.front().at_run, first->second + 1);
}

TEST(Explore, takes_the_same_course_with_any_number_of_threads) {
  ExploreRequest request = toy_request(7);
  request.runs_max = 1000;
  const auto one = explore(request);
  request.jobs = 4;
  const auto four = explore(request);
  ASSERT_EQ(one.coverage.marks.size(), four.coverage.marks.size());
  for (std::size_t i = 0; i < one.coverage.marks.size(); ++i) {
    EXPECT_EQ(one.coverage.marks[i].count, four.coverage.marks[i].count);
  }
  EXPECT_EQ(one.coverage.branches, four.coverage.branches);
}

TEST(Explore, reports_every_mark_with_its_count_and_a_rising_curve) {
  ExploreRequest request = toy_request(3);
  request.runs_max = 10000;
  const auto coverage = explore(request).coverage;
  EXPECT_EQ(coverage.runs, 10000U);
  EXPECT_GT(coverage.branches, 5000U);
  EXPECT_EQ(coverage.marks.size(), request.marks.size());
  EXPECT_EQ(unreached(coverage), std::vector<std::string>{"never"});
  ASSERT_GT(coverage.curve.size(), 5U);
  EXPECT_EQ(coverage.curve.back().runs, 10000U);
  EXPECT_EQ(coverage.curve.back().marks, request.marks.size() - 1);
  for (std::size_t i = 1; i < coverage.curve.size(); ++i) {
    EXPECT_GE(coverage.curve[i].marks, coverage.curve[i - 1].marks);
    EXPECT_GT(coverage.curve[i].runs, coverage.curve[i - 1].runs);
  }
}

TEST(Explore, alone_it_never_branches_and_a_signal_ends_it) {
  ExploreRequest request = toy_request(3);
  request.runs_max = 500;
  request.alone = true;
  EXPECT_EQ(explore(request).coverage.branches, 0U);
  request.interrupted = [] { return true; };
  const auto result = explore(request);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.coverage.runs, 0U);
}

TEST(Explore, every_timeline_is_about_the_subject) {
  for (const auto& subject : timeline_subjects()) {
    ExploreRequest request = toy_request(3);
    request.runs_max = 200;
    request.subject = subject;
    request.taken = [&](const Recipe& recipe, const TimelineResult&) {
      EXPECT_TRUE(is_about(recipe.seed, subject)) << to_string(recipe);
    };
    EXPECT_EQ(explore(request).coverage.runs, 200U);
  }
}

TEST(Finding, is_new_ongoing_or_resolved) {
  const auto finding = [](const std::string& signature, const std::string& status) {
    reports::SearchFinding one;
    one.signature = signature;
    one.status = status;
    return one;
  };
  const std::vector earlier = {finding("a", "new"), finding("b", "ongoing"), finding("c", "new"),
                               finding("d", "resolved"), finding("e", "resolved")};
  std::vector now = {finding("b", ""), finding("e", ""), finding("f", "")};
  const auto passes = [](const reports::SearchFinding& one) { return one.signature != "c"; };
  const auto resolved = resolved_since(earlier, now, passes);
  EXPECT_EQ(now[0].status, "ongoing");
  EXPECT_EQ(now[1].status, "new") << "it was resolved and is back";
  EXPECT_EQ(now[2].status, "new");
  ASSERT_EQ(resolved.size(), 1U);
  EXPECT_EQ(resolved[0].signature, "a");
  EXPECT_EQ(resolved[0].status, "resolved");
  ASSERT_EQ(now.size(), 4U);
  EXPECT_EQ(now[3].signature, "c");
  EXPECT_EQ(now[3].status, "ongoing") << "it did not come up again, and its recipe still fails";
}

// --- real timelines ------------------------------------------------------------------------------

TEST(Timeline, is_a_function_of_its_recipe) {
  for (const std::string text : {"5", "6p", "5/2:0:77", "5/2:100:77p"}) {
    const auto first = run_timeline(parse_recipe(text), "");
    const auto second = run_timeline(parse_recipe(text), "");
    EXPECT_EQ(first.marks, second.marks) << text;
    EXPECT_EQ(first.tuples, second.tuples) << text;
    EXPECT_EQ(first.verdict, Verdict::kPass) << text << ": " << first.code << ": " << first.reason;
    ASSERT_EQ(first.lives.size(), second.lives.size()) << text;
    for (std::size_t i = 0; i < first.lives.size(); ++i) {
      EXPECT_EQ(first.lives[i].decisions, second.lives[i].decisions) << text;
    }
  }
}

TEST(Timeline, a_branch_repeats_the_lives_before_it) {
  const auto lives = [](const std::string& text) { return scenario_of(parse_recipe(text)).lives; };
  std::size_t changed = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto root = lives(std::to_string(seed));
    const auto branch = lives(std::to_string(seed) + "/3:0:9");
    const auto schedule = lives(std::to_string(seed) + "/3:50:9");
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(root[i], branch[i]);
    EXPECT_EQ(root[3], schedule[3]);
    changed += root[3] == branch[3] ? 0 : 1;
  }
  EXPECT_GT(changed, 10U);
}

TEST(Marks, are_registered_once_and_timelines_reach_registered_ones) {
  const auto& all = all_marks();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_GE(all.size(), 60U);
  std::set<std::string> reached;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const auto& mark : run_timeline({.seed = seed}, "").marks) {
      EXPECT_TRUE(std::binary_search(all.begin(), all.end(), mark.name)) << mark.name;
      reached.insert(mark.name);
    }
  }
  EXPECT_GT(reached.size(), 30U);
}

}  // namespace
}  // namespace reprise::driver
