// Tests the timelines of failures: what they keep of a life, and that a failed run gets one.

#include "driver/trace/life_timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "driver/runs/failure_timelines.hpp"

namespace reprise::driver {
namespace {

using reports::TimelineEvent;
using reports::TimelineKind;
using sim::Meeting;
using sim::SliceKind;
using testing::ElementsAre;

Scenario scenario_of_ranks(int ranks) {
  return parse_scenario(
      "proves: x\n"
      "job: {model: gpt-tiny, layout: {dp: " +
          std::to_string(ranks) +
          "}, optimizer: {kind: adam, sharding: fully_reshardable}}\n"
          "steps: [{train: 1}, save, restart, {train: 1}]\n"
          "expect: {max_delta: 0, against: uninterrupted}\n",
      "x.yaml");
}

sim::Slice slice(SliceKind kind, std::int32_t rank, const std::string& name, std::uint64_t begin,
                 std::uint64_t end) {
  return {.kind = kind, .rank = GlobalRank{rank}, .name = name, .begin_ns = begin, .end_ns = end};
}

/// A call of the group {0 1 2}, for which rank 2 did not come.
std::vector<sim::Slice> waits_for_rank_2() {
  std::vector<sim::Slice> slices;
  for (const std::int32_t rank : {0, 1}) {
    auto one = slice(SliceKind::kCollective, rank, "barrier", 10 + rank, 50);
    one.detail = "{0 1 2}";
    one.meeting = Meeting{4, 7};
    one.cut = true;
    slices.push_back(one);
  }
  return slices;
}

TEST(LifeTimeline, a_collective_is_one_event_with_present_and_missing_ranks) {
  sim::Recording recording{.slices = waits_for_rank_2()};
  const auto timeline = timeline_of(scenario_of_ranks(3), 1, recording);
  EXPECT_EQ(timeline.life, 1U);
  ASSERT_EQ(timeline.events.size(), 1U);
  const TimelineEvent& event = timeline.events[0];
  EXPECT_EQ(event.kind, TimelineKind::kCollective);
  EXPECT_EQ(event.name, "barrier");
  EXPECT_EQ(event.ranks.size(), 2U);
  EXPECT_EQ(event.ranks[1].begin_ns, 11U);
  EXPECT_THAT(event.missing, ElementsAre(2));
  EXPECT_TRUE(event.cut);
  EXPECT_EQ(event.end_ns, 50U);
  for (auto& one : recording.slices) one.cut = false;  // the third slice was left out
  EXPECT_TRUE(timeline_of(scenario_of_ranks(3), 1, recording).events[0].missing.empty());
}

TEST(LifeTimeline, store_calls_on_a_file_are_one_event_and_the_tracker_commits) {
  sim::Recording recording;
  for (const auto& [name, path, begin] :
       {std::tuple{"create", "a", 10}, std::tuple{"write", "a", 20}, std::tuple{"write", "a", 30},
        std::tuple{"sync", "a", 40}, std::tuple{"stat", "b", 50}, std::tuple{"stat", "a", 60}}) {
    const auto at = static_cast<std::uint64_t>(begin);
    recording.slices.push_back(slice(SliceKind::kStore, 0, name, at, at + 5));
    recording.slices.back().detail = path;
  }
  auto step = slice(SliceKind::kStep, 0, "tracker", 70, 80);
  step.detail = "commit";
  step.save = Step{3};
  recording.slices.push_back(step);
  recording.instants = {{sim::InstantKind::kFault, GlobalRank{0}, 90, "crash", "where"},
                        {sim::InstantKind::kEnd, GlobalRank{0}, 90, "killed", ""}};
  std::vector<std::string> said;
  for (const auto& event : timeline_of(scenario_of_ranks(1), 0, recording).events) {
    said.push_back(name_of(event.kind) + " " + event.name + " " +
                   std::to_string(event.ranks[0].begin_ns) + "-" + std::to_string(event.end_ns));
  }
  EXPECT_THAT(
      said, ElementsAre("store create, write, sync 10-45", "store stat 50-55", "store stat 60-65",
                        "step tracker 70-80", "commit commit of step 3 80-80", "fault crash 90-90",
                        "end killed 90-90"));
  recording.slices.back().cut = true;
  for (const auto& event : timeline_of(scenario_of_ranks(1), 0, recording).events) {
    EXPECT_NE(event.kind, TimelineKind::kCommit) << "the tracker has not moved";
  }
}

TEST(LifeTimeline, a_long_life_keeps_its_last_events_and_the_ranks_that_matter) {
  sim::Recording recording{.slices = waits_for_rank_2()};
  for (std::uint64_t i = 0; i < 300; ++i) {
    recording.slices.push_back(slice(SliceKind::kPhase, 3, "plan", i, i + 1));
  }
  recording.instants = {{sim::InstantKind::kFault, GlobalRank{90}, 400, "late", ""}};
  recording.left_out = 1000;
  const auto timeline = timeline_of(scenario_of_ranks(100), 0, recording);
  EXPECT_EQ(timeline.events.size(), kTimelineEventsMax);
  EXPECT_EQ(timeline.events_left_out, 1000 + 302 - kTimelineEventsMax);
  EXPECT_EQ(timeline.events.back().name, "late");
  ASSERT_EQ(timeline.ranks.size(), kTimelineRanksMax);
  EXPECT_EQ(timeline.ranks_left_out, 100 - kTimelineRanksMax);
  EXPECT_EQ(timeline.ranks.back().rank, 90);
  EXPECT_EQ(timeline.ranks.back().place, "dp90");
  EXPECT_TRUE(std::is_sorted(timeline.ranks.begin(), timeline.ranks.end(),
                             [](const auto& a, const auto& b) { return a.rank < b.rank; }));
}

constexpr const char* kFalseHope =
    "proves: A save that is to fail ends well, so the scenario fails.\n"
    "job: {model: gpt-tiny, layout: {dp: 3}, optimizer: {kind: adam, sharding: "
    "fully_reshardable}}\n"
    "steps: [{train: 1}, {save: {fails: NO_SPACE}}, restart, {train: 1}]\n"
    "expect: {max_delta: 0, against: uninterrupted}\n";

reports::Report run_failing(bool timelines, std::uint64_t seed = 1) {
  RunRequest request;
  request.timelines = timelines;
  request.options.seed = seed;
  return run_these({scenario_of_ranks(2), parse_scenario(kFalseHope, "f.yaml")}, request,
                   [](auto...) {});
}

TEST(FailureTimelines, a_failed_scenario_gets_one_on_request_with_the_same_result) {
  const auto plain = run_failing(false);
  const auto with = run_failing(true);
  EXPECT_EQ(with.scenarios[0].verdict, reports::Verdict::kPass);
  EXPECT_FALSE(with.scenarios[0].failure);
  ASSERT_EQ(with.scenarios[1].verdict, reports::Verdict::kFail) << with.scenarios[1].reason;
  EXPECT_FALSE(plain.scenarios[1].failure->timeline);
  ASSERT_TRUE(with.scenarios[1].failure->timeline);
  EXPECT_EQ(with.scenarios[1].event_hash, plain.scenarios[1].event_hash);
  EXPECT_EQ(with.scenarios[1].reason, plain.scenarios[1].reason);
  const auto& timeline = *with.scenarios[1].failure->timeline;
  EXPECT_EQ(timeline.life, 0U) << "life 1 passes";
  EXPECT_EQ(timeline.ranks.size(), 3U);
  std::set<std::string> kinds;
  for (const auto& event : timeline.events) kinds.insert(name_of(event.kind));
  EXPECT_EQ(kinds, (std::set<std::string>{"collective", "commit", "phase", "step", "store"}));
}

TEST(FailureTimelines, a_run_that_takes_another_course_the_second_time_gets_none) {
  auto report = run_failing(false);
  report.scenarios[1].event_hash = "that of another run";
  const std::vector<Scenario> scenarios = {scenario_of_ranks(2),
                                           parse_scenario(kFalseHope, "f.yaml")};
  add_timelines(scenarios, {}, report);
  EXPECT_FALSE(report.scenarios[1].failure->timeline);
}

}  // namespace
}  // namespace reprise::driver
