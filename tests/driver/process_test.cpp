#include "driver/lanes/process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "driver/lanes/command_run.hpp"
#include "driver/lanes/process_lane.hpp"
#include "driver/lanes/process_table.hpp"
#include "driver/yaml/text_file.hpp"
#include "reprise/error.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

volatile std::sig_atomic_t noted = 0;

extern "C" void note_it(int /*signal*/) { noted = 1; }

/// Notes SIGINT until it is destroyed, when the signals that run_process forwards are as usual
/// again.
class Noting {
 public:
  Noting() {
    noted = 0;
    std::signal(SIGINT, note_it);
  }
  ~Noting() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  }
  Noting(const Noting&) = delete;
  Noting& operator=(const Noting&) = delete;
};

TEST(Process, a_signal_ends_the_child_and_then_runs_the_programs_handler) {
  const contracts::TemporaryDirectory directory;
  const std::string log = directory.path() + "/log";
  const Noting noting;
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
}

// The child sends the signal at once, often before this program knows the child's process id.
TEST(Process, a_signal_right_after_the_start_ends_the_child_too) {
  const contracts::TemporaryDirectory directory;
  for (int turn = 0; turn < 100; ++turn) {
    const Noting noting;
    const ProcessEnd end = run_process({"sh", "-c", "kill -INT $PPID; exec sleep 60"},
                                       directory.path() + "/log", {.deadline_s = 50});
    ASSERT_EQ(end.exit_code, 128 + SIGTERM);
    ASSERT_FALSE(end.timed_out);
    ASSERT_EQ(noted, 1);
  }
}

TEST(Process, a_child_that_cannot_start_takes_no_other_childs_place) {
  const Noting noting;
  std::atomic<bool> done = false;
  std::vector<std::thread> failing;
  for (int thread = 0; thread < 2; ++thread) {
    failing.emplace_back([&] {
      while (!done) EXPECT_THROW(run_process({"/no/such"}, "/dev/null", {}), Error);
    });
  }
  // A child whose place was taken away is not sent the signal, and runs until its deadline.
  bool timed_out = false;
  for (int turn = 0; turn < 50 && !timed_out; ++turn) {
    std::signal(SIGINT, note_it);  // a handler is called once
    timed_out =
        run_process({"sh", "-c", "kill -INT $PPID; exec sleep 60"}, "/dev/null", {.deadline_s = 20})
            .timed_out;
  }
  EXPECT_FALSE(timed_out);
  done = true;
  for (auto& thread : failing) thread.join();
}

/// Starts four children at a time, which run until they are killed; `word` is in their command
/// lines.
[[noreturn]] void start_four(const std::string& word) {
  for (int thread = 0; thread < 4; ++thread) {
    std::thread([word] {
      run_process({"tail", "-f", word}, "/dev/null", {.deadline_s = 50});
    }).detach();
  }
  while (true) ::pause();
}

TEST(Process, a_signal_that_ends_the_program_leaves_no_child_behind) {
  const contracts::TemporaryDirectory directory;
  const std::string word = directory.path() + "/log";
  std::ofstream(word).close();
  for (int turn = 0; turn < 100; ++turn) {
    const pid_t program = ::fork();
    ASSERT_GE(program, 0);
    if (program == 0) start_four(word);
    std::this_thread::sleep_for(std::chrono::microseconds(50 * turn));
    ::kill(program, SIGTERM);
    int status = 0;
    ASSERT_EQ(::waitpid(program, &status, 0), program);
    EXPECT_EQ(WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGTERM);
    // A child that was sent a signal may need a moment to end.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!started_with(word).empty() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const auto left = started_with(word);
    for (const auto child : left) ::kill(static_cast<pid_t>(child), SIGKILL);
    ASSERT_EQ(left, std::vector<std::int64_t>()) << "in turn " << turn;
  }
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
