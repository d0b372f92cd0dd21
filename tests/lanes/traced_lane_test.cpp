// Tests traces of lanes with real processes: what ranks leave, and the trace that the driver makes
// of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "driver/lanes/trace_part.hpp"
#include "driver/language/catalogue.hpp"
#include "driver/record/build_info.hpp"
#include "driver/runs/run.hpp"
#include "driver/trace/trace_file.hpp"
#include "reprise/error.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/fixtures/perfetto_reader.hpp"
#include "tests/lanes/lane_options.hpp"

namespace reprise::driver {
namespace {

using contracts::TemporaryDirectory;
using test::ReadEvent;
using test::ReadTrace;

constexpr GlobalRank kFirst{0};
constexpr GlobalRank kSecond{1};
constexpr std::uint64_t kEndedNs = 1'000'009'000;  // when the launcher ended

/// Runs one row of a scenario in which rank 0 dies in its commit.
ReadTrace trace_of_a_crash() {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/t.pftrace";
  TraceFile file(path);
  RunRequest request;
  request.lane = LaneKind::kMpi;
  request.selection.paths = {REPRISE_SOURCE_DIR "/scenarios/faults/crash-commit.yaml"};
  request.selection.rows_max = 1;
  request.options = lane_options();
  request.trace = &file;
  const auto report = run_these(read_files(request.selection).scenarios, request, [](auto...) {});
  file.finish();
  EXPECT_EQ(report.scenarios.size(), 1U);
  EXPECT_EQ(report.verdict, reports::Verdict::kPass) << report.scenarios.at(0).reason;
  std::ifstream in(path, std::ios::binary);
  return test::read_trace(std::string{std::istreambuf_iterator<char>(in), {}});
}

class TracedLane : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (build_info().has_mpi) trace = trace_of_a_crash();
  }
  void SetUp() override {
    if (!build_info().has_mpi) GTEST_SKIP() << "built without MPI";
    for (const auto& [uuid, track] : trace.tracks) {
      if (track.pid) lives.push_back(track.name);
    }
    ASSERT_EQ(lives.size(), 2U);
  }

  static ReadTrace trace;
  std::vector<std::string> lives;  ///< names of the processes, in order
};

ReadTrace TracedLane::trace;

/// A slice of a track, with its begin.
struct ReadSlice {
  ReadEvent begin;
  std::uint64_t end_ns = 0;
};

std::vector<ReadSlice> slices_of(const std::vector<ReadEvent>& events) {
  std::vector<ReadSlice> slices;
  std::vector<std::size_t> open;
  for (const auto& event : events) {
    if (event.type == 'B') {
      open.push_back(slices.size());
      slices.push_back({event, 0});
    } else if (event.type == 'E' && !open.empty()) {
      slices[open.back()].end_ns = event.at_ns;
      open.pop_back();
    }
  }
  return slices;
}

TEST_F(TracedLane, each_rank_of_each_life_has_phases_steps_and_calls) {
  for (const auto& life : lives) {
    const bool first = life == lives.front();
    for (const char* rank : {"rank 0 = dp0", "rank 1 = dp1"}) {
      SCOPED_TRACE(life + ", " + rank);
      std::map<std::string, std::set<std::string>> names;
      for (const auto& event : trace.events) {
        if (event.type != 'B' || trace.process_of(event).name != life) continue;
        const std::string& track = trace.tracks.at(event.track).name;
        if (track.starts_with(rank)) names[event.category].insert(event.name);  // or a thread of it
      }
      EXPECT_TRUE(names["phase"].contains(first ? "plan" : "load_plan"));
      EXPECT_TRUE(names["phase"].contains(first ? "commit" : "read"));
      EXPECT_TRUE(names["collective"].contains("communicator"));
      EXPECT_TRUE(names["collective"].contains("all_gather"));
      EXPECT_TRUE(names["store"].contains(first ? "write" : "read"));
    }
    std::set<std::string> writers;
    for (const auto& event : trace.events) {
      if (event.name != (first ? "write" : "read") || event.category != "store") continue;
      const std::string& track = trace.tracks.at(event.track).name;
      const bool of_life = trace.process_of(event).name == life;
      if (of_life && track.starts_with("store")) writers.insert(event.notes.at("rank"));
    }
    EXPECT_EQ(writers, (std::set<std::string>{"0", "1"}));
  }
  std::set<std::string> steps;
  for (const auto& event : trace.events) {
    if (event.category == "step") steps.insert(event.name);
  }
  EXPECT_TRUE(steps.contains("tracker")) << testing::PrintToString(steps);
}

TEST_F(TracedLane, slices_are_balanced_and_times_ascend_also_from_life_to_life) {
  std::map<std::uint64_t, std::vector<ReadEvent>> open;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> times;
  std::uint64_t last = 0;
  for (const auto& event : trace.events) {
    EXPECT_GE(event.at_ns, last) << event.name;
    last = event.at_ns;
    auto& time = times.try_emplace(trace.process_of(event).name, last, last).first->second;
    time.second = last;
    auto& own = open[event.track];
    if (event.type == 'B') own.push_back(event);
    if (event.type != 'E') continue;
    ASSERT_FALSE(own.empty()) << trace.tracks.at(event.track).name;
    own.pop_back();
  }
  for (const auto& [track, own] : open) EXPECT_TRUE(own.empty()) << trace.tracks.at(track).name;
  EXPECT_EQ(times[lives[0]].first, 0U);
  EXPECT_GT(times[lives[1]].first, times[lives[0]].second);
  for (const auto& life : lives) {
    const std::uint64_t took_ns = times[life].second - times[life].first;
    EXPECT_GT(took_ns, 100'000U) << "a life takes real time";
    EXPECT_LT(took_ns, 120'000'000'000U) << "the ranks of a node have one clock";
  }
}

TEST_F(TracedLane, a_flow_links_the_ranks_of_each_collective_at_one_time) {
  for (const auto& life : lives) {
    SCOPED_TRACE(life);
    std::map<std::uint64_t, std::vector<ReadSlice>> flows;
    std::map<std::string, std::size_t> alone;
    for (const char* rank : {"rank 0 = dp0", "rank 1 = dp1"}) {
      for (const auto& slice : slices_of(trace.events_on(rank, life))) {
        if (slice.begin.category != "collective") continue;
        ASSERT_LE(slice.begin.flows.size(), 1U);
        if (slice.begin.flows.empty() && slice.begin.notes.at("group") != "{0 1}") continue;
        if (slice.begin.flows.empty()) {
          ++alone[rank];
        } else {
          flows[slice.begin.flows[0]].push_back(slice);
        }
      }
    }
    // The rank that is left alone comes to one more, in which it notices the other's death.
    EXPECT_EQ(alone["rank 0 = dp0"], 0U);
    EXPECT_LE(alone["rank 1 = dp1"], life == lives[0] ? 1U : 0U);
    EXPECT_GT(flows.size(), 5U);
    for (const auto& [flow, slices] : flows) {
      ASSERT_EQ(slices.size(), 2U);
      const ReadSlice& a = slices[0];
      const ReadSlice& b = slices[1];
      EXPECT_EQ(a.begin.name, b.begin.name);
      EXPECT_EQ(a.begin.notes.at("call"), b.begin.notes.at("call"));
      EXPECT_EQ(a.begin.notes.at("group"), b.begin.notes.at("group"));
      EXPECT_NE(a.begin.track, b.begin.track);
      if (a.begin.name == "broadcast" || a.begin.name == "communicator") continue;
      EXPECT_LE(a.begin.at_ns, b.end_ns) << a.begin.name << ": nobody leaves before all have come";
      EXPECT_LE(b.begin.at_ns, a.end_ns) << a.begin.name << ": nobody leaves before all have come";
    }
  }
}

TEST_F(TracedLane, a_dying_rank_ends_its_slices_and_the_other_fails_later) {
  const auto instants_of = [&](const char* rank, const std::string& life) {
    std::vector<std::pair<std::string, std::uint64_t>> instants;
    for (const auto& event : trace.events_on(rank, life)) {
      if (event.type == 'i') instants.emplace_back(event.name, event.at_ns);
    }
    return instants;
  };
  const auto dead = instants_of("rank 0 = dp0", lives[0]);
  const auto left = instants_of("rank 1 = dp1", lives[0]);
  ASSERT_EQ(dead.size(), 2U);
  EXPECT_EQ(dead[0].first, "fault: crash");
  EXPECT_EQ(dead[1].first, "killed");
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].first, "failed");
  EXPECT_GT(left[0].second, dead[1].second);
  bool cut = false;
  for (const auto& event : trace.events_on("rank 0 = dp0", lives[0])) {
    EXPECT_LE(event.at_ns, dead[1].second) << event.name;
    cut = cut || (event.name == "commit" && event.notes.contains("cut"));
  }
  EXPECT_TRUE(cut);
  EXPECT_TRUE(instants_of("rank 0 = dp0", lives[1]).empty());
  EXPECT_TRUE(instants_of("rank 1 = dp1", lives[1]).empty());
}

RankRecord record_of(GlobalRank rank, Ending ending) {
  RankRecord record;
  record.result.rank = rank.value;
  record.ending = ending;
  return record;
}

/// Writes what two ranks did: a collective together, and then rank 1 a call to the store.
void write_parts(const std::string& records) {
  TracePart first(trace_part_file(records, 0));
  TracePart second(trace_part_file(records, 1));
  sim::Slice slice{.kind = sim::SliceKind::kCollective,
                   .rank = kSecond,
                   .fiber = 1,
                   .name = "barrier",
                   .detail = "{0 1}",
                   .begin_ns = 1'000'000'200,
                   .end_ns = 1'000'000'300,
                   .meeting = sim::Meeting{~std::uint64_t{0}, 2}};
  second.add(1, slice);
  slice.rank = kFirst;
  slice.fiber = 0;
  slice.begin_ns = 1'000'000'100;
  first.add(1, slice);
  first.add(sim::Instant{sim::InstantKind::kFault, kFirst, 1'000'000'350, "crash", "commit"});
  second.add(0, {.kind = sim::SliceKind::kStore,
                 .rank = kSecond,
                 .fiber = 3,
                 .name = "write",
                 .detail = "a/\xff",
                 .begin_ns = 1'000'000'400,
                 .end_ns = 1'000'000'500,
                 .bytes = 7,
                 .cut = true});
}

TEST(TracePart, parts_come_back_as_one_recording_that_begins_at_0) {
  const TemporaryDirectory records;
  write_parts(records.path());
  const auto recording = merged_parts(
      records.path(), {record_of(kFirst, Ending::kLost), record_of(kSecond, Ending::kReturned)},
      kEndedNs);
  EXPECT_TRUE(recording.real_time);
  EXPECT_EQ(recording.duration_ns, 400U);
  ASSERT_EQ(recording.slices.size(), 3U);
  EXPECT_EQ(recording.slices[0].rank, kFirst);
  EXPECT_EQ(recording.slices[0].begin_ns, 0U);
  EXPECT_EQ(recording.slices[1].begin_ns, 100U);
  ASSERT_TRUE(recording.slices[1].meeting.has_value());
  EXPECT_EQ(recording.slices[0].meeting, recording.slices[1].meeting);
  EXPECT_EQ(recording.slices[1].meeting->channel, ~std::uint64_t{0});
  const sim::Slice& write = recording.slices[2];
  EXPECT_EQ(write.kind, sim::SliceKind::kStore);
  EXPECT_EQ(write.fiber, 3U);
  EXPECT_EQ(write.bytes, 7U);
  EXPECT_TRUE(write.cut);
  EXPECT_FALSE(write.meeting.has_value());
  ASSERT_EQ(recording.instants.size(), 2U);
  EXPECT_EQ(recording.instants[0].name, "crash");
  EXPECT_EQ(recording.instants[1].name, "killed") << "the driver knows that it left no end";
  EXPECT_EQ(recording.instants[1].at_ns, 250U);
}

TEST(TracePart, a_torn_last_line_is_skipped_and_so_is_all_after_damage) {
  const TemporaryDirectory records;
  write_parts(records.path());
  const std::vector<RankRecord> ranks = {record_of(kFirst, Ending::kReturned),
                                         record_of(kSecond, Ending::kReturned)};
  std::ofstream(trace_part_file(records.path(), 1), std::ios::app) << R"({"over":0,"ra)";
  const auto whole = merged_parts(records.path(), ranks, kEndedNs);
  EXPECT_EQ(whole.slices.size(), 3U);
  EXPECT_EQ(whole.instants.size(), 1U);
  std::ofstream(trace_part_file(records.path(), 1), std::ios::app) << "\n{\"instant\":0}\n";
  const auto damaged = merged_parts(records.path(), ranks, kEndedNs);
  EXPECT_EQ(damaged.slices.size(), 3U);
  ASSERT_EQ(damaged.instants.size(), 2U);
  const sim::Instant& lost = damaged.instants.back();
  EXPECT_EQ(lost.kind, sim::InstantKind::kLost);
  EXPECT_EQ(lost.rank, kSecond);
  EXPECT_EQ(lost.at_ns, 400U);
  EXPECT_THAT(lost.detail, testing::HasSubstr("rank1.trace, line 3"));
}

TEST(TracePart, a_hanging_rank_stays_in_its_slices_until_the_launcher_ends) {
  for (const Ending ending : {Ending::kHung, Ending::kLost}) {
    const TemporaryDirectory records;
    write_parts(records.path());
    {
      TracePart part(trace_part_file(records.path(), 2));
      sim::Slice slice{
          .rank = GlobalRank{2}, .fiber = 2, .name = "commit", .begin_ns = 1'000'000'150};
      part.begin(1, slice);
      slice = {.kind = sim::SliceKind::kCollective,
               .rank = GlobalRank{2},
               .fiber = 2,
               .name = "barrier",
               .begin_ns = 1'000'000'160};
      part.begin(2, slice);
      slice.meeting = sim::Meeting{4, 7};
      part.begin(2, slice);
      slice.name = "stat";
      part.begin(3, slice);
      slice.end_ns = 1'000'000'170;
      part.add(3, slice);
    }
    const auto recording =
        merged_parts(records.path(),
                     {record_of(kFirst, Ending::kReturned), record_of(kSecond, Ending::kReturned),
                      record_of(GlobalRank{2}, ending)},
                     kEndedNs);
    const bool hung = ending == Ending::kHung;
    const std::uint64_t end_ns = hung ? kEndedNs - 1'000'000'100 : 70;
    EXPECT_EQ(recording.duration_ns, hung ? end_ns : 400U);
    std::map<std::string, sim::Slice> own;
    for (const auto& slice : recording.slices) {
      if (slice.rank == GlobalRank{2}) own.emplace(slice.name, slice);
    }
    ASSERT_EQ(own.size(), 3U);
    for (const char* name : {"commit", "barrier"}) {
      EXPECT_EQ(own.at(name).end_ns, end_ns) << name;
      EXPECT_TRUE(own.at(name).cut) << name;
    }
    EXPECT_TRUE(own.at("barrier").meeting.has_value());
    EXPECT_EQ(own.at("stat").end_ns, 70U);
    EXPECT_FALSE(own.at("stat").cut);
    const auto end = std::find_if(recording.instants.begin(), recording.instants.end(),
                                  [](const auto& one) { return one.rank == GlobalRank{2}; });
    ASSERT_NE(end, recording.instants.end());
    EXPECT_EQ(end->name, hung ? "hung" : "killed");
    EXPECT_EQ(end->at_ns, end_ns);
  }
}

TEST(TracePart, that_cant_be_made_is_an_error) {
  try {
    const TracePart part("/no/such/directory/rank0.trace");
    FAIL() << "it was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kIo);
  }
}

TEST(TracePart, slices_that_ended_first_are_dropped_and_no_part_means_idle) {
  const TemporaryDirectory records;
  write_parts(records.path());
  const auto recording =
      merged_parts(records.path(),
                   {record_of(kFirst, Ending::kReturned), record_of(kSecond, Ending::kReturned),
                    record_of(GlobalRank{2}, Ending::kReturned)},
                   kEndedNs, 1);
  ASSERT_EQ(recording.slices.size(), 1U);
  EXPECT_EQ(recording.slices[0].name, "write");
  EXPECT_EQ(recording.left_out, 2U);
  const TemporaryDirectory empty;
  const auto nothing = merged_parts(
      empty.path(), {record_of(kFirst, Ending::kReturned), record_of(kSecond, Ending::kFailed)},
      kEndedNs);
  EXPECT_TRUE(nothing.slices.empty());
  EXPECT_EQ(nothing.duration_ns, 0U);
  ASSERT_EQ(nothing.instants.size(), 1U);
  EXPECT_EQ(nothing.instants[0].name, "failed") << "a rank that failed before it did anything";
}

}  // namespace
}  // namespace reprise::driver
