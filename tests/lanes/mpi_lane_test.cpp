// Tests the lane with real processes. When one rank dies or hangs, each other rank must still have
// a record, and no process may remain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "driver/lanes/process_table.hpp"
#include "driver/lanes/reprise_ranks.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/random/generator.hpp"
#include "driver/ranks/rank_guard.hpp"
#include "driver/record/build_info.hpp"
#include "driver/runs/determinism.hpp"
#include "driver/runs/run.hpp"
#include "driver/yaml/text_file.hpp"
#include "reprise/error.hpp"
#include "tests/contracts/property_seed.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/lanes/lane_options.hpp"

namespace reprise::driver {
namespace {

using contracts::TemporaryDirectory;
using testing::HasSubstr;

constexpr std::uint64_t kRandomCases = 8;

class MpiLane : public testing::Test {
 protected:
  void SetUp() override {
    if (!build_info().has_mpi) GTEST_SKIP() << "built without MPI";
  }
};

/// Returns a scenario in which three ranks save twice. The action `fault` comes before the second
/// save.
Scenario with_fault(const std::string& fault) {
  return parse_scenario(
      "proves: nothing\n"
      "job: {model: gpt-tiny, layout: {dp: 3}, optimizer: {kind: adam, sharding: "
      "fully_reshardable}}\n"
      "steps:\n"
      "  - train: 1\n"
      "  - save\n"
      "  - train: 1\n"
      "  - fault: " +
          fault +
          "\n"
          "  - save\n"
          "  - restart\n"
          "  - train: 1\n"
          "expect: {max_delta: 0, against: uninterrupted}\n",
      "faulty.yaml");
}

struct Life {
  LifeRecord record;
  double seconds = 0;
};

Life first_life(const Scenario& scenario, const LaneOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Life life{make_process_lane(LaneKind::kMpi, scenario, options)->run(0, Past{}), 0};
  life.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return life;
}

/// Requires that the fault ended rank 1, that every other rank failed with `first` or PEER_FAILED,
/// and that at least one of them failed with `first`.
void expect_survivors(const Life& life, Code first) {
  ASSERT_EQ(life.record.launch_error, "");
  ASSERT_EQ(life.record.ranks.size(), 3U);
  bool found = false;
  for (const auto& rank : life.record.ranks) {
    if (rank.result.rank == 1) {
      EXPECT_EQ(rank.ending, Ending::kLost) << rank.message;
      ASSERT_EQ(rank.faults.size(), 1U);
      EXPECT_TRUE(rank.faults[0].fired);
      EXPECT_EQ(rank.saves.size(), 2U) << "its record must show its progress";
      continue;
    }
    EXPECT_EQ(rank.ending, Ending::kFailed) << rank.message;
    EXPECT_THAT(rank.code, testing::AnyOf(first, Code::kPeerFailed)) << rank.message;
    found = found || rank.code == first;
    EXPECT_TRUE(rank.findings.empty()) << rank.findings[0].text;
  }
  EXPECT_TRUE(found);
}

TEST_F(MpiLane, survivors_name_a_killed_rank_before_the_deadline__3_ranks) {
  for (const char* phase : {"plan", "stage", "vote", "commit"}) {
    SCOPED_TRACE(phase);
    const Life life = first_life(
        with_fault("{kind: crash, rank: 1, phase: " + std::string(phase) + ", moment: before}"),
        lane_options());
    expect_survivors(life, Code::kPeerFailed);
    EXPECT_LT(life.seconds, 30);
  }
}

/// Returns the process IDs of the ranks in the launch that stores its checkpoints in this
/// directory.
std::vector<std::int64_t> ranks_with(const std::string& store) {
  std::vector<std::int64_t> ranks = started_with(store);
  std::erase_if(ranks, [](std::int64_t process) {
    const std::filesystem::path entry = "/proc/" + std::to_string(process);
    return !text_of(entry / "cmdline").starts_with(ranks_program(REPRISE_EXE) + '\0' + "rank");
  });
  return ranks;
}

/// Waits until at least one rank runs, then waits for the time `after`, and then kills a rank.
/// Returns false if all ranks have already ended.
bool kill_one(const std::string& store, std::chrono::milliseconds after) {
  while (ranks_with(store).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(after);
  const auto ranks = ranks_with(store);
  if (ranks.empty()) return false;
  const auto which = static_cast<std::size_t>(after.count()) % ranks.size();
  return ::kill(static_cast<pid_t>(ranks[which]), SIGKILL) == 0;
}

TEST_F(MpiLane, a_rank_killed_during_mpi_start_ends_the_launch__3_ranks) {
  for (const int after_ms : {60, 100, 140, 180, 220, 260}) {
    const TemporaryDirectory kept;
    LaneOptions options = lane_options();
    options.keep = kept.path();
    // Without the kill, rank 1 would keep the launch alive for another two seconds.
    const Scenario scenario =
        with_fault("{kind: lost, rank: 1, phase: plan, moment: before, delay_ms: 20000}");
    auto killed = std::async(std::launch::async, kill_one, kept.path() + "/" + scenario.name,
                             std::chrono::milliseconds(after_ms));
    const Life life = first_life(scenario, options);
    ASSERT_TRUE(killed.get());
    SCOPED_TRACE(testing::Message() << after_ms << " ms, " << life.seconds << " s");
    EXPECT_LT(life.seconds, 40);
    ASSERT_EQ(life.record.launch_error, "");
    std::size_t lost = 0;
    for (const auto& rank : life.record.ranks) {
      EXPECT_NE(rank.ending, Ending::kHung) << rank.message;
      EXPECT_NE(rank.ending, Ending::kReturned);
      if (rank.ending == Ending::kLost) ++lost;
    }
    EXPECT_GE(lost, 1U);
  }
}

TEST(RankGuard, gives_up_on_ended_or_missing_peers_but_not_too_early) {
  using std::chrono::milliseconds;
  const TemporaryDirectory directory;
  RankLiveness own(directory.path(), {0});
  const pid_t peer = ::fork();
  if (peer == 0) {
    const RankLiveness held(directory.path(), {1});
    while (true) ::pause();
  }
  const pid_t quick = ::fork();
  if (quick == 0) {
    RankLiveness(directory.path(), {3}).come_through();
    ::_exit(0);
  }
  ::waitpid(quick, nullptr, 0);
  while (!own.has_begun({1})) std::this_thread::yield();
  const StartLimits limits{.begun = milliseconds(100), .through = milliseconds(200)};
  const auto reason = [&](std::int32_t world, int since) {
    const auto error = why_end(own, {0}, world, milliseconds(since), limits);
    return error ? std::string(error->what()) : "";
  };
  EXPECT_EQ(reason(3, 100), "");
  EXPECT_THAT(reason(3, 101), HasSubstr("DEADLINE: start of the ranks: rank 2 did not start"));
  EXPECT_EQ(reason(2, 200), "");
  EXPECT_THAT(reason(2, 201), HasSubstr("DEADLINE: start of the ranks: all have started"));
  ::kill(peer, SIGKILL);
  ::waitpid(peer, nullptr, 0);
  EXPECT_THAT(reason(3, 0), HasSubstr("PEER_FAILED: start of the ranks: rank 1 has ended"));
  std::optional<std::chrono::steady_clock::time_point> since;
  EXPECT_FALSE(why_leave(own, {0}, 1, since, milliseconds(0))) << "it has no peers";
  EXPECT_FALSE(why_leave(own, {0}, 2, since, milliseconds(60'000))) << "it may still notice";
  EXPECT_TRUE(since);
  EXPECT_THAT(why_leave(own, {0}, 2, since, milliseconds(0))->what(),
              HasSubstr("PEER_FAILED: rank 1 has ended"));
  EXPECT_TRUE(own.has_ended({3}));
  EXPECT_TRUE(own.came_through({3})) << "a rank that ended after its start is no reason to give up";
  EXPECT_FALSE(own.came_through({1}));
}

TEST_F(MpiLane, survivors_of_a_missing_rank_end_at_the_deadline__3_ranks) {
  const Life life =
      first_life(with_fault("{kind: lost, rank: 1, phase: vote, moment: before, delay_ms: 120000}"),
                 lane_options());
  expect_survivors(life, Code::kDeadline);
  EXPECT_LT(life.seconds, 60) << "a minute of the scenario lasts six seconds";
}

TEST_F(MpiLane, rank_that_hangs_on_is_killed_and_that_is_said__3_ranks) {
  LaneOptions hasty = lane_options();
  hasty.deadline_s = 15;
  const Life life = first_life(
      with_fault("{kind: lost, rank: 1, phase: vote, moment: before, delay_ms: 9000000}"), hasty);
  EXPECT_LT(life.seconds, 60);
  ASSERT_EQ(life.record.ranks.size(), 3U);
  EXPECT_EQ(life.record.ranks[1].ending, Ending::kHung);
  EXPECT_THAT(life.record.ranks[1].message, HasSubstr("was killed"));
  EXPECT_EQ(life.record.ranks[0].ending, Ending::kFailed) << life.record.ranks[0].message;
}

/// A script that starts mpirun. It is used as the launcher in place of mpirun. `around` contains
/// the lines of the script; "$@" in it is replaced by the arguments.
class Launcher {
 public:
  explicit Launcher(const std::string& around) : path_(bin_.path() + "/launcher") {
    std::ofstream(path_) << "#!/bin/sh\n"
                            "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n" +
                                around;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  const std::string& path() const { return path_; }
  std::string directory() const { return bin_.path(); }

 private:
  TemporaryDirectory bin_;
  std::string path_;
};

TEST_F(MpiLane, srun_is_told_to_let_survivors_live__2_ranks) {
  const Launcher launcher(
      "echo \"$@\" >> $(dirname $0)/words\n"
      "shift 2\n"
      "exec mpirun --oversubscribe --enable-recovery \"$@\"\n");
  std::filesystem::rename(launcher.path(), launcher.directory() + "/srun");
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (launcher.directory() + ":" + path).c_str(), 1);
  LaneOptions by_srun = lane_options();
  by_srun.launcher = "srun";
  const auto result = run_scenario(
      with_fault("{kind: crash, rank: 1, phase: commit, moment: before}"), LaneKind::kMpi, by_srun);
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(result.verdict, reports::Verdict::kPass) << result.code << ": " << result.reason;
  std::ifstream in(launcher.directory() + "/words");
  std::string words;
  std::getline(in, words);
  EXPECT_THAT(words, testing::StartsWith("--kill-on-bad-exit=0 --wait=0 -n 3 "));
}

/// A rank writes its record before it ends. Only the launcher knows how it ended.
TEST_F(MpiLane, leftovers_and_exit_codes_of_the_launcher_are_judged__3_ranks) {
  struct Row {
    std::string what;
    std::string around;
    std::string code;
    std::string says;
  };
  const std::string nap = "97." + std::to_string(::getpid());  // unique length of a sleep
  const std::vector<Row> rows = {
      {"all is well", "exec mpirun \"$@\"\n", "", ""},
      {"a rank failed after it had told", "mpirun \"$@\"; exit 134\n", "INTERNAL",
       "ended with 134"},
      {"it hangs when all have told", "mpirun \"$@\"; exec sleep " + nap + "\n", "HANG",
       "still running"},
      {"a process of its own group is left",
       "mpirun \"$@\"; sleep " + nap +
           " &\n"
           "until grep -aq ^sleep /proc/$!/cmdline; do sleep 0.01; done\n"  // until the shell
                                                                            // became sleep
           "exit 0\n",
       "HANG", "left processes behind"},
      {"one that went away is left",
       "mpirun \"$@\"; away=$(dirname $0)/away; export away\n"
       "setsid sh -c ': > $away; sleep " +
           nap +
           "; :' \"$@\" &\n"
           "until [ -e $away ]; do sleep 0.01; done\n",  // the process has then left its group
       "HANG", "left the process"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    const Launcher launcher(row.around);
    LaneOptions other = lane_options();
    other.launcher = launcher.path();
    other.deadline_s = 12;
    const auto result = run_scenario(
        with_fault("{kind: crash, rank: 1, phase: commit, moment: before, nth: 9, fires: no}"),
        LaneKind::kMpi, other);
    EXPECT_EQ(result.code, row.code) << result.reason;
    EXPECT_THAT(result.reason, HasSubstr(row.says));
    EXPECT_THAT(started_with(nap), testing::IsEmpty());
  }
}

TEST_F(MpiLane, ranks_of_which_none_leaves_a_record_make_it_inconclusive) {
  const TemporaryDirectory place;
  // It says which program it is, and then leaves no record.
  const std::string silent = ranks_program(place.path() + "/reprise");
  std::ofstream(silent) << "#!/bin/sh\n[ \"$1\" = libraries ] && exec '" +
                               ranks_program(REPRISE_EXE) + "' libraries\nexit 1\n";
  std::filesystem::permissions(silent, std::filesystem::perms::owner_all);
  LaneOptions wrong = lane_options();
  wrong.executable = place.path() + "/reprise";
  const auto result =
      run_scenario(with_fault("{kind: crash, rank: 1, fires: maybe}"), LaneKind::kMpi, wrong);
  EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive) << result.reason;
  EXPECT_THAT(result.reason, HasSubstr("no rank left a record"));
}

/// Runs random scenarios both on the lane of real processes and in the simulated world. Both must
/// give the same results. The seed of the run selects the scenarios.
TEST_F(MpiLane, random_scenarios_end_as_in_the_simulated_world) {
  const Stream random(contracts::seed_of_run());
  for (std::uint64_t i = 0; i < contracts::cases_of_run(kRandomCases); ++i) {
    const CaseLimits limits{.world_max = 4, .lives_max = 3};
    const Scenario scenario = i % 2 == 0 ? random_scenario(random.split(i), limits)
                                         : random_faulty_scenario(random.split(i), limits);
    SCOPED_TRACE(to_yaml(scenario));
    const auto here = run_scenario(scenario, LaneKind::kMpi, lane_options());
    const auto there = run_scenario(scenario, LaneKind::kSim, lane_options());
    EXPECT_EQ(here.verdict, reports::Verdict::kPass) << here.code << ": " << here.reason;
    reports::Report report{.lane = reports::ReportLane::kMpi, .scenarios = {here}};
    compare_courses({course_of(there)}, report);
    EXPECT_EQ(determinism_mismatches(report), 0U) << report.scenarios[0].reason;
  }
}

TEST_F(MpiLane, each_rank_of_each_life_has_a_log_of_its_own) {
  const TemporaryDirectory out;
  LaneOptions logged = lane_options();
  logged.log = {.level = "debug", .directory = out.path()};
  const auto scenario = read_scenario(REPRISE_SOURCE_DIR "/scenarios/placements/ep2.yaml");
  EXPECT_EQ(run_scenario(scenario, LaneKind::kMpi, logged).verdict, reports::Verdict::kPass);
  for (const char* life : {"life0", "life1"}) {
    for (const char* rank : {"0", "1"}) {
      const std::string text =
          text_of(out.path() + "/placements/ep2/" + life + "-rank" + rank + ".log");
      EXPECT_THAT(text, HasSubstr("rank " + std::string(rank) + " step ")) << life;
      EXPECT_THAT(text, HasSubstr(life == std::string("life0") ? " write: " : " read: ")) << life;
    }
  }
}

}  // namespace
}  // namespace reprise::driver
