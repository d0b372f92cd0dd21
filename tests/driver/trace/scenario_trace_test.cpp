// Tests traces of whole scenarios on the simulated lane. Recording must change nothing, lives must
// stay apart, and equal runs must have equal bytes.

#include "driver/trace/scenario_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "driver/language/catalogue.hpp"
#include "driver/runs/run.hpp"
#include "driver/trace/trace_file.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/fixtures/perfetto_reader.hpp"

namespace reprise::driver {
namespace {

using contracts::TemporaryDirectory;
using test::ReadEvent;
using test::ReadTrace;

constexpr std::string_view kDense = R"(
proves: A dense job goes on under another layout.
job: {model: gpt-tiny, layout: {tp: 2, pp: 2}, optimizer: {kind: adam, sharding: fully_reshardable}}
steps: [{train: 1}, save, {restart: {layout: {tp: 4}}}, {train: 1}]
expect: {max_delta: 0, against: uninterrupted}
)";
constexpr std::string_view kCrash = R"(
proves: A rank dies in its commit.
job: {model: gpt-tiny, layout: {dp: 3}, optimizer: {kind: adam, sharding: fully_reshardable}}
steps:
  - train: 1
  - save
  - fault: {kind: crash, rank: 0, phase: commit, step: metadata, moment: before}
  - save
  - restart
  - train: 1
expect: {max_delta: 0, against: uninterrupted}
)";
constexpr std::string_view kFailing = R"(
proves: A save fails, and the job goes on. Two saves are in flight.
job: {model: gpt-tiny, layout: {dp: 2}, optimizer: {kind: adam, sharding: fully_reshardable}}
checkpoint: {async: true, in_flight: 2}
steps:
  - fault: {kind: no_space, rank: 1, file: payload}
  - train: 1
  - save: {fails: NO_SPACE}
  - finalize
  - train: 1
  - save
  - train: 1
  - save
  - train: 1
  - finalize
  - restart
  - train: 1
expect: {max_delta: 0, against: uninterrupted}
)";
constexpr std::string_view kHang = R"(
proves: A rank that is lost is missed.
job: {model: gpt-tiny, layout: {dp: 2}, optimizer: {kind: adam, sharding: fully_reshardable}}
steps:
  - train: 1
  - save
  - fault: {kind: lost, rank: 1, phase: plan, delay_ms: 90000}
  - save
  - restart
  - train: 1
expect: {max_delta: 0, against: uninterrupted}
)";

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> scenarios;
  for (const auto& [name, text] : {std::pair{"dense", kDense}, std::pair{"crash", kCrash},
                                   std::pair{"failing", kFailing}, std::pair{"lost", kHang}}) {
    scenarios.push_back(parse_scenario(std::string(text), std::string(name) + ".yaml"));
    scenarios.back().name = name;
  }
  return scenarios;
}

struct Traced {
  reports::Report report;
  std::string bytes;
};

Traced run_traced(std::size_t jobs, std::uint64_t seed = 1) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/t.pftrace";
  TraceFile file(path);
  RunRequest request;
  request.jobs = jobs;
  request.options.seed = seed;
  request.trace = &file;
  auto report = run_these(all_scenarios(), request, [](auto...) {});
  file.finish();
  std::ifstream in(path, std::ios::binary);
  return {std::move(report), {std::istreambuf_iterator<char>(in), {}}};
}

const Traced& traced() {
  static const Traced once = run_traced(1);
  return once;
}
const ReadTrace& trace() {
  static const ReadTrace once = test::read_trace(traced().bytes);
  return once;
}

TEST(ScenarioTrace, a_run_with_a_trace_has_the_event_hashes_of_one_without) {
  const auto plain = run_these(all_scenarios(), {}, [](auto...) {});
  ASSERT_EQ(plain.scenarios.size(), 4U);
  for (std::size_t i = 0; i < plain.scenarios.size(); ++i) {
    EXPECT_EQ(plain.scenarios[i].verdict, reports::Verdict::kPass)
        << plain.scenarios[i].name << ": " << plain.scenarios[i].reason;
    EXPECT_EQ(plain.scenarios[i].event_hash.size(), 16U);
    EXPECT_EQ(traced().report.scenarios[i].event_hash, plain.scenarios[i].event_hash);
    EXPECT_EQ(traced().report.scenarios[i].verdict, plain.scenarios[i].verdict);
  }
}

TEST(ScenarioTrace, equal_runs_give_equal_bytes_even_in_parallel) {
  EXPECT_GT(traced().bytes.size(), 10'000U);
  EXPECT_TRUE(run_traced(1).bytes == traced().bytes);
  EXPECT_TRUE(run_traced(2).bytes == traced().bytes);
  EXPECT_FALSE(run_traced(1, 2).bytes == traced().bytes);
}

TEST(ScenarioTrace, each_life_of_each_scenario_is_a_process_with_named_ranks) {
  std::vector<std::string> processes;
  std::set<std::string> tracks;
  for (const auto& [uuid, track] : trace().tracks) {
    if (track.pid) {
      processes.push_back(track.name);
    } else {
      tracks.insert(trace().tracks.at(track.parent).name + " | " + track.name);
    }
  }
  EXPECT_EQ(processes, (std::vector<std::string>{"dense, life 0: tp2 pp2", "dense, life 1: tp4",
                                                 "crash, life 0: dp3", "crash, life 1: dp3",
                                                 "failing, life 0: dp2", "failing, life 1: dp2",
                                                 "lost, life 0: dp2", "lost, life 1: dp2"}));
  EXPECT_TRUE(tracks.contains("dense, life 0: tp2 pp2 | rank 3 = tp1 pp1"));
  EXPECT_TRUE(tracks.contains("dense, life 1: tp4 | rank 3 = tp3"));
  EXPECT_TRUE(tracks.contains("crash, life 1: dp3 | store"));
}

TEST(ScenarioTrace, lives_of_a_scenario_follow_one_another_and_no_flow_spans_two) {
  std::map<std::uint64_t, std::set<std::string>> processes_of_flow;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> times;
  for (const auto& event : trace().events) {
    const std::string& process = trace().process_of(event).name;
    for (const auto flow : event.flows) processes_of_flow[flow].insert(process);
    auto& [first, last] = times.try_emplace(process, event.at_ns, event.at_ns).first->second;
    first = std::min(first, event.at_ns);
    last = std::max(last, event.at_ns);
  }
  EXPECT_GT(processes_of_flow.size(), 100U);
  for (const auto& [flow, processes] : processes_of_flow) {
    EXPECT_EQ(processes.size(), 1U) << *processes.begin();
  }
  EXPECT_LT(times["dense, life 0: tp2 pp2"].second, times["dense, life 1: tp4"].first);
  EXPECT_LT(times["lost, life 0: dp2"].second, times["lost, life 1: dp2"].first);
  EXPECT_GT(times["lost, life 0: dp2"].second, 60'000'000'000U) << "the deadline, in virtual time";
}

TEST(ScenarioTrace, the_slices_of_every_track_are_balanced_and_nest) {
  std::map<std::uint64_t, std::vector<ReadEvent>> open;
  std::map<std::uint64_t, std::uint64_t> last;
  for (const auto& event : trace().events) {
    EXPECT_GE(event.at_ns, last[event.track]);
    last[event.track] = event.at_ns;
    auto& own = open[event.track];
    if (event.type == 'B') own.push_back(event);
    if (event.type != 'E') continue;
    ASSERT_FALSE(own.empty()) << trace().tracks.at(event.track).name;
    own.pop_back();
  }
  for (const auto& [track, own] : open) EXPECT_TRUE(own.empty()) << trace().tracks.at(track).name;
}

TEST(ScenarioTrace, a_rank_that_dies_ends_its_slices_and_records_nothing_more) {
  const std::string life = "crash, life 0: dp3";
  std::uint64_t death = 0;
  std::vector<std::string> names;
  for (const auto& event : trace().events_on("rank 0 = dp0", life)) {
    if (event.type == 'i') names.push_back(event.name);
    if (event.name == "killed") death = event.at_ns;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"fault: crash", "killed"}));
  std::set<std::string> cut;
  std::uint64_t last_of_others = 0;
  for (const auto& event : trace().events) {
    if (trace().process_of(event).name != life) continue;
    const auto& track = trace().tracks.at(event.track);
    if (!track.name.starts_with("rank 0")) {
      last_of_others = std::max(last_of_others, event.at_ns);
      continue;
    }
    EXPECT_LE(event.at_ns, death) << track.name << ": " << event.name;
    if (event.notes.contains("cut")) cut.insert(event.name);
  }
  EXPECT_EQ(cut, (std::set<std::string>{"commit"}));
  EXPECT_GT(last_of_others, death);
}

TEST(ScenarioTrace, phases_steps_collectives_and_the_store_are_there) {
  std::map<std::string, std::set<std::string>> names;
  for (const auto& event : trace().events) {
    if (event.type != 'E') names[event.category].insert(event.name);
  }
  for (const char* phase : {"plan", "stage", "write", "vote", "commit", "locate", "metadata",
                            "load_plan", "read", "objects", "common", "take"}) {
    EXPECT_TRUE(names["phase"].contains(phase)) << phase;
  }
  EXPECT_TRUE(names["step"].contains("tracker"));
  EXPECT_TRUE(names["collective"].contains("all_gather"));
  EXPECT_TRUE(names["store"].contains("write"));
  EXPECT_TRUE(names["fault"].contains("fault: no_space"));
}

TEST(ScenarioTrace, a_phase_that_fails_ends_before_the_next_save) {
  std::map<std::string, int> cut;
  for (const auto& event : trace().events) {
    if (trace().process_of(event).name != "failing, life 0: dp2" || event.type != 'B') continue;
    if (event.category == "phase" && event.notes.contains("cut")) {
      ++cut[event.name];
      EXPECT_EQ(event.notes.at("save_of_step"), "1");
    }
  }
  EXPECT_GE(cut.size(), 1U);
}

}  // namespace
}  // namespace reprise::driver
