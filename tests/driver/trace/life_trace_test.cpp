// Tests the packets of a life by reading them with a reader that shares nothing with the writer.

#include "driver/trace/life_trace.hpp"

#include <gtest/gtest.h>

#include "tests/fixtures/perfetto_reader.hpp"

namespace reprise::driver {
namespace {

using sim::InstantKind;
using sim::Meeting;
using sim::SliceKind;

constexpr GlobalRank kFirst{0};
constexpr GlobalRank kSecond{1};

sim::Recording recording_of_two_ranks() {
  sim::Recording recording;
  recording.slices = {
      {.kind = SliceKind::kPhase,
       .rank = kFirst,
       .fiber = 0,
       .name = "commit",
       .begin_ns = 1000,
       .end_ns = 9000,
       .bytes = 5,
       .save = Step{3}},
      {.kind = SliceKind::kStep,
       .rank = kFirst,
       .fiber = 0,
       .name = "swap_in",
       .detail = "commit",
       .begin_ns = 1000,
       .end_ns = 4000,
       .save = Step{3},
       .cut = true},
      {.kind = SliceKind::kCollective,
       .rank = kFirst,
       .fiber = 0,
       .name = "barrier",
       .detail = "{0 1}",
       .begin_ns = 4000,
       .end_ns = 9000,
       .meeting = Meeting{7, 2}},
      {.kind = SliceKind::kStore,
       .rank = kSecond,
       .fiber = 1,
       .name = "write",
       .detail = "a/b",
       .begin_ns = 4000,
       .end_ns = 8000,
       .bytes = 300},
      {.kind = SliceKind::kStore,
       .rank = kSecond,
       .fiber = 2,
       .name = "stat",
       .detail = "c",
       .begin_ns = 5000,
       .end_ns = 7000},
      {.kind = SliceKind::kCollective,
       .rank = kSecond,
       .fiber = 1,
       .name = "barrier",
       .detail = "{0 1}",
       .begin_ns = 8000,
       .end_ns = 9000,
       .meeting = Meeting{7, 2}},
      {.kind = SliceKind::kCollective,
       .rank = kSecond,
       .fiber = 1,
       .name = "all_gather",
       .detail = "{1}",
       .begin_ns = 9000,
       .end_ns = 9500,
       .meeting = Meeting{8, 0}},
      {.kind = SliceKind::kCopy,
       .rank = kFirst,
       .fiber = 2,
       .name = "scatter",
       .detail = "node0:0",
       .begin_ns = 2000,
       .end_ns = 4000,
       .bytes = 40},
      {.kind = SliceKind::kCopy,
       .rank = kFirst,
       .fiber = 0,
       .name = "gather",
       .detail = "node0:0",
       .begin_ns = 3000,
       .end_ns = 5000},
      {.kind = SliceKind::kCopy,
       .rank = kFirst,
       .fiber = 0,
       .name = "scatter",
       .detail = "node0:0",
       .begin_ns = 4000,
       .end_ns = 9100},
  };
  recording.instants = {{InstantKind::kFault, kFirst, 9000, "crash", "commit: barrier"},
                        {InstantKind::kEnd, kFirst, 9000, "killed", ""}};
  recording.duration_ns = 9500;
  return recording;
}

const TracedLife kLife{.number = 5,
                       .name = "s, life 1: dp2",
                       .begin_ns = 100'000,
                       .ranks = {"rank 0 = dp0", "rank 1"}};

using Lines = std::vector<std::string>;

/// Returns the events of a track as text: "B commit", "E", "i killed", each with its time in us.
Lines lines_of(const test::ReadTrace& trace, const std::string& track) {
  Lines lines;
  for (const auto& event : trace.events_on(track, kLife.name)) {
    lines.push_back(std::to_string(event.at_ns / 1000) + " " + event.type +
                    (event.name.empty() ? "" : " " + event.name));
  }
  return lines;
}

test::ReadTrace read(const sim::Recording& recording) {
  return test::read_trace(packets_of(kLife, recording));
}

TEST(LifeTrace, the_process_has_the_life_as_its_name_and_its_tracks_in_order) {
  const auto trace = read(recording_of_two_ranks());
  Lines tracks;
  for (const auto& [uuid, track] : trace.tracks) {
    if (track.pid) {
      EXPECT_EQ(*track.pid, 5U);
      EXPECT_EQ(track.name, kLife.name);
      continue;
    }
    ASSERT_TRUE(trace.tracks.at(track.parent).pid);
    tracks.resize(std::max<std::size_t>(tracks.size(), *track.order));
    tracks.at(*track.order - 1) = track.name;
  }
  EXPECT_EQ(tracks, (Lines{"rank 0 = dp0", "rank 0 = dp0, gather", "rank 0 = dp0, scatter",
                           "rank 1", "rank 1, background 1", "store"}));
}

TEST(LifeTrace, slices_nest_and_balance_and_the_life_begins_at_its_time) {
  const auto trace = read(recording_of_two_ranks());
  EXPECT_EQ(lines_of(trace, "rank 0 = dp0"),
            (Lines{"101 B commit", "101 B swap_in", "104 E", "104 B barrier", "109 i fault: crash",
                   "109 i killed", "109 E", "109 E"}));
  EXPECT_EQ(lines_of(trace, "rank 1"),
            (Lines{"104 B write", "108 E", "108 B barrier", "109 E", "109 B all_gather", "109 E"}));
  EXPECT_EQ(lines_of(trace, "rank 1, background 1"), (Lines{"105 B stat", "107 E"}));
  EXPECT_EQ(lines_of(trace, "store"), (Lines{"106 B stat", "107 E", "107 B write", "108 E"}))
      << "in the order in which they take effect";
}

TEST(LifeTrace, copies_have_a_track_for_each_direction) {
  const auto trace = read(recording_of_two_ranks());
  EXPECT_EQ(lines_of(trace, "rank 0 = dp0, scatter"),
            (Lines{"102 B scatter", "104 E", "104 B scatter", "109 E"}));
  EXPECT_EQ(lines_of(trace, "rank 0 = dp0, gather"), (Lines{"103 B gather", "105 E"}));
  const auto first = trace.events_on("rank 0 = dp0, scatter", kLife.name).front();
  EXPECT_EQ(first.category, "copy");
  EXPECT_EQ(first.notes.at("device"), "node0:0");
  EXPECT_EQ(first.notes.at("bytes"), "40");
}

TEST(LifeTrace, slices_tell_what_they_are_about) {
  const auto trace = read(recording_of_two_ranks());
  using Notes = std::map<std::string, std::string>;
  std::map<std::string, Notes> notes;
  std::map<std::string, std::string> categories;
  for (const auto& event : trace.events) {
    if (event.type == 'E') continue;
    notes[trace.tracks.at(event.track).name + " " + event.name] = event.notes;
    categories[event.name] = event.category;
  }
  EXPECT_EQ(notes["rank 0 = dp0 commit"], (Notes{{"save_of_step", "3"}, {"bytes", "5"}}));
  EXPECT_EQ(notes["rank 0 = dp0 swap_in"], (Notes{{"save_of_step", "3"}, {"cut", "1"}}));
  EXPECT_EQ(notes["rank 1 barrier"], (Notes{{"group", "{0 1}"}, {"call", "2"}}));
  EXPECT_EQ(notes["rank 1 write"], (Notes{{"path", "a/b"}, {"bytes", "300"}}));
  EXPECT_EQ(notes["store write"], (Notes{{"path", "a/b"}, {"bytes", "300"}, {"rank", "1"}}));
  EXPECT_EQ(notes["rank 0 = dp0 fault: crash"], (Notes{{"where", "commit: barrier"}}));
  EXPECT_EQ(categories["commit"], "phase");
  EXPECT_EQ(categories["swap_in"], "step");
  EXPECT_EQ(categories["barrier"], "collective");
  EXPECT_EQ(categories["write"], "store");
  EXPECT_EQ(categories["fault: crash"], "fault");
  EXPECT_EQ(categories["killed"], "end");
}

TEST(LifeTrace, one_flow_links_the_members_of_a_call_but_not_a_group_of_one) {
  std::map<std::uint64_t, Lines> flows;
  const auto trace = read(recording_of_two_ranks());
  for (const auto& event : trace.events) {
    for (const auto flow : event.flows) {
      flows[flow].push_back(trace.tracks.at(event.track).name + " " + event.name);
    }
  }
  ASSERT_EQ(flows.size(), 1U);
  EXPECT_EQ(flows.begin()->second, (Lines{"rank 0 = dp0 barrier", "rank 1 barrier"}));
}

TEST(LifeTrace, slices_that_were_left_out_are_counted) {
  auto recording = recording_of_two_ranks();
  EXPECT_TRUE(read(recording).events_on(kLife.name, kLife.name).empty());
  recording.left_out = 12;
  const auto said = read(recording).events_on(kLife.name, kLife.name);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].notes.at("slices"), "12");
}

}  // namespace
}  // namespace reprise::driver
