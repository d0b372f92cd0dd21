#include "driver/lanes/process.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "driver/lanes/command_run.hpp"
#include "driver/lanes/process_lane.hpp"
#include "driver/yaml/text_file.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

volatile std::sig_atomic_t noted = 0;

extern "C" void note_it(int /*signal*/) { noted = 1; }

TEST(Process, a_signal_ends_the_child_and_then_runs_the_programs_handler) {
  const contracts::TemporaryDirectory directory;
  const std::string log = directory.path() + "/log";
  std::signal(SIGINT, note_it);
  std::thread sender([&log] {
    while (text_of(log).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::kill(::getpid(), SIGINT);
  });
  const ProcessEnd end =
      run_process({"sh", "-c", "echo up; exec sleep 60"}, log, {.deadline_s = 50});
  sender.join();
  EXPECT_EQ(end.exit_code, 128 + SIGTERM);
  EXPECT_FALSE(end.timed_out);
  EXPECT_EQ(noted, 1);
  EXPECT_EXIT(std::raise(SIGINT), testing::KilledBySignal(SIGINT), "");
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

TEST(ProcessLane, rules_on_processes_that_do_not_end_as_their_ranks_say) {
  std::vector<RankRecord> ranks(2);
  for (auto& rank : ranks) rank.ending = Ending::kReturned;
  const auto said = [&ranks](const ProcessEnd& end, const std::vector<std::int64_t>& left = {}) {
    std::string text;
    for (const auto& finding : findings_on("mpirun", end, ranks, left)) {
      text += std::string(name_of(finding.code)) + ": " + finding.text + "\n";
    }
    return text;
  };
  EXPECT_EQ(said({}), "");
  EXPECT_EQ(said({}, {12, 13}),
            "HANG: mpirun left the process 12 behind, which was killed\n"
            "HANG: mpirun left the process 13 behind, which was killed\n");
  EXPECT_EQ(said({.left_some = true}), "HANG: mpirun left processes behind, which were killed\n");
  const std::string well = "every rank reports success, but mpirun ";
  EXPECT_EQ(said({.timed_out = true}),
            "HANG: " + well + "was still running at the deadline, and was killed\n");
  EXPECT_EQ(said({.cut_short = true}),
            "HANG: " + well + "was still running long after, and was killed\n");
  EXPECT_EQ(said({.exit_code = 5}), "INTERNAL: " + well + "ended with 5: one failed after that\n");
  ranks[1].ending = Ending::kFailed;
  EXPECT_EQ(said({.timed_out = true, .exit_code = 5}), "") << "a rank says so itself";
}

TEST(CommandLife, says_which_deadline_ended_it) {
  const CommandLife life{.command = {"true"}, .seconds = 7};
  EXPECT_EQ(complaint_of(life, {}), "");
  EXPECT_EQ(complaint_of(life, {.process = {.timed_out = true, .exit_code = 143}, .log = "step 2"}),
            "the command did not finish within 7 s (its `seconds` in the scenario): step 2");
  EXPECT_EQ(complaint_of(life, {.process = {.exit_code = 3}}),
            "the command should have ended with 0 but ended with 3");
}

}  // namespace
}  // namespace reprise::driver
