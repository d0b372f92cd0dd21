// Kills processes with SIGKILL during real saves on a real file system. Afterwards, either the
// previous or the new checkpoint must load. Data that a killed process wrote remains in the page
// cache. The data lost in a power cut is tested on the simulated store (tests/sim/faults).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <thread>

#include "core/api/calls.hpp"
#include "core/base/random.hpp"
#include "core/save/phases.hpp"
#include "reprise/save.hpp"
#include "sim/faults/faulty_ports.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/sim/faults/fault_world.hpp"

namespace reprise::sim {
namespace {

using contracts::TemporaryDirectory;

constexpr std::int32_t kRanks = 2;
constexpr int kKills = 60;  // number of kills at random times by another process

SaveOptions options_of(std::int64_t step) {
  return {.directory = kRoot, .step = step, .keep = 2, .staging_bytes = 16384, .batch_bytes = 8192};
}

void save(const Ports& ports, std::int64_t step) {
  SmallState state(ports.fabric.rank(), kRanks);
  state.become(step);
  Job job = job_over(ports, ports.fabric.communicator(Group::world(kRanks)));
  begin_save(job, state.leaves(), options_of(step)).finish();
}

/// Begins two saves, of step `first` and of the next step. The state changes while both are in
/// flight.
void save_two_beside(const Ports& ports, std::int64_t first) {
  SmallState state(ports.fabric.rank(), kRanks);
  Job job = job_over(ports, ports.fabric.communicator(Group::world(kRanks)));
  std::int64_t step = first;
  SaveQueue queue(2);
  for (; step < first + 2; ++step) {
    state.become(step);
    const SaveOptions options = options_of(step);
    queue.begin(
        options, [&] { return begin_save(job, state.leaves(), options); },
        [](const EndedSave& end) {
          if (end.error) throw Error(*end.error);
        });
    state.become(100 + step);
    queue.poll();
  }
  queue.finalize();
}

/// Settings of the process to be killed, which saves from step 2 up to `last`.
struct Saving {
  void (*program)(const Ports&, std::int64_t first) = save;
  std::int64_t last = 2;
};

/// Loads the newest checkpoint on all ranks. Returns its step, which must be the same on all ranks.
std::int64_t loaded_step(const std::string& directory) {
  std::vector<std::int64_t> steps(kRanks, -1);
  contracts::run_ranks(kRanks, directory, [&](const Ports& ports) {
    SmallState state(ports.fabric.rank(), kRanks);
    LoadOptions options;
    options.directory = kRoot;
    options.checksums = LoadChecksums::kVerified;
    auto group = ports.fabric.communicator(Group::world(kRanks));
    load(ports, *group, state.leaves(), options);
    steps[static_cast<std::size_t>(ports.fabric.rank().value)] = state.step().value_or(-1);
  });
  EXPECT_EQ(steps[0], steps[1]);
  return steps[0];
}

/// Runs `body` in a separate process, which must either succeed or be killed. Returns true if it
/// was killed.
bool killed_in(const std::function<void()>& body,
               const std::function<void(pid_t)>& meanwhile = {}) {
  const pid_t child = ::fork();
  if (child < 0) {
    ADD_FAILURE() << "fork failed";
    return false;
  }
  if (child == 0) {
    try {
      body();
      std::_Exit(0);
    } catch (const std::exception& error) {
      std::cerr << error.what() << '\n';
      std::_Exit(1);
    }
  }
  if (meanwhile) meanwhile(child);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;
  return killed;
}

[[noreturn]] void kill_this_process() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

/// Saves in a separate process with this fault. Returns true if the fault killed the process.
bool killed_in_save(const std::string& directory, const Saving& saving, const FaultSpec& fault) {
  return killed_in([&] {
    FaultBook book({fault});
    contracts::run_ranks(kRanks, directory, [&](const Ports& ports) {
      FaultyPorts faulty(ports, book, {.die = kill_this_process, .sleep = [](std::uint64_t) {}});
      book.arm(0, ports.fabric.rank());
      saving.program(faulty.ports(), 2);
    });
  });
}

/// Kills a process while it saves over a checkpoint of step 1. Returns false if the save ended
/// without reaching the point at which the fault takes effect.
bool try_kill(const FaultSpec& fault, std::map<std::int64_t, int>& found,
              const Saving& saving = {}) {
  SCOPED_TRACE(to_string(fault));
  const TemporaryDirectory directory;
  contracts::run_ranks(kRanks, directory.path(), [](const Ports& ports) { save(ports, 1); });
  const bool killed = killed_in_save(directory.path(), saving, fault);
  const std::int64_t step = loaded_step(directory.path());
  if (!killed) {
    EXPECT_EQ(step, saving.last);
    return false;
  }
  EXPECT_TRUE(step >= 1 && step <= saving.last) << step;
  ++found[step];
  // Leftover files must not delay the next save.
  const std::int64_t next = saving.last + 1;
  contracts::run_ranks(kRanks, directory.path(), [&](const Ports& ports) { save(ports, next); });
  EXPECT_EQ(loaded_step(directory.path()), next);
  return true;
}

void expect_both(const std::map<std::int64_t, int>& found, const std::string& what) {
  for (const auto& [step, times] : found) {
    std::cout << what << ": step " << step << " loads after " << times << " kills\n";
  }
  EXPECT_GT(found.count(1), 0U);
  EXPECT_GT(found.count(2), 0U);
}

TEST(Kills, at_every_call_of_a_save_leave_the_old_or_new_one__2_ranks) {
  std::map<std::int64_t, int> found;
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    std::int64_t nth = 0;
    while (!HasFailure() && try_kill({.place = {.rank = {rank}, .nth = nth}}, found)) ++nth;
    EXPECT_GT(nth, 10) << "rank " << rank;
  }
  expect_both(found, "at every call");
}

TEST(Kills, at_every_call_of_two_saves_in_flight_leave_one__2_ranks) {
  std::map<std::int64_t, int> found;
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    std::int64_t nth = 0;
    const auto killed = [&] {
      return try_kill({.place = {.rank = {rank}, .nth = nth}}, found, {save_two_beside, 3});
    };
    while (!HasFailure() && killed()) ++nth;
    EXPECT_GT(nth, 20) << "rank " << rank;
  }
  expect_both(found, "at every call of two");
  EXPECT_GT(found.count(3), 0U);
}

TEST(Kills, around_each_phase_and_step_leave_the_old_or_new_one__2_ranks) {
  std::map<std::int64_t, int> found;
  for (const FaultMoment moment : {FaultMoment::kBefore, FaultMoment::kAfter}) {
    for (std::int32_t rank = 0; rank < kRanks; ++rank) {
      for (const auto phase : phases_of_save()) {
        const bool killed = try_kill(
            {.place = {.rank = {rank}, .phase = std::string(phase), .moment = moment}}, found);
        EXPECT_TRUE(killed) << phase << " of rank " << rank;
      }
    }
    for (const auto step : kCommitSteps) {
      const bool killed = try_kill(
          {.place = {.phase = "commit", .step = std::string(step), .moment = moment}}, found);
      EXPECT_TRUE(killed) << "step " << step;
    }
  }
  expect_both(found, "before and after");
}

/// True if the checkpoints' root contains a set-aside directory. A save leaves one behind if it is
/// killed before it renames the directory to its final name.
bool is_unfinished(const std::string& directory) {
  PosixStore store(directory);
  const auto entries = store.list(kRoot);
  return std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return aside_name(entry.name).has_value(); });
}

/// Runs one process after another. Each process saves one step after another until the test kills
/// it, at a random time after a random number of saves. The process reports through a pipe when it
/// has begun and what it has saved: on a busy machine the time alone says neither.
TEST(Kills, from_outside_at_any_time_lose_nothing_committed__2_ranks) {
  const TemporaryDirectory directory;
  const auto start = std::chrono::steady_clock::now();
  contracts::run_ranks(kRanks, directory.path(), [](const Ports& ports) { save(ports, 1); });
  const std::chrono::microseconds one_save = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start);
  Stream random(1);
  std::int64_t last = 1;
  int unfinished = 0;
  for (int i = 0; i < kKills && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    int news[2];
    ASSERT_EQ(::pipe(news), 0);
    std::int64_t committed = last;
    const auto hear = [&] { return ::read(news[0], &committed, sizeof committed) > 0; };
    killed_in(
        [&] {
          for (std::int64_t step = last;; ++step) {
            if (step > last) {
              contracts::run_ranks(kRanks, directory.path(),
                                   [&](const Ports& ports) { save(ports, step); });
            }
            if (::write(news[1], &step, sizeof step) != sizeof step) std::_Exit(2);
          }
        },
        [&](pid_t child) {
          ::close(news[1]);  // so that hear() ends if the child does
          for (std::uint64_t more = 1 + random.below(3); more > 0; --more) hear();
          std::this_thread::sleep_for(one_save / 100 * random.below(100));
          ::kill(child, SIGKILL);
        });
    while (hear()) {
    }
    ::close(news[0]);
    unfinished += is_unfinished(directory.path()) ? 1 : 0;
    const std::int64_t found = loaded_step(directory.path());
    EXPECT_TRUE(found == committed || found == committed + 1)
        << found << " is loaded, " << committed << " was committed";
    last = found;
  }
  std::cout << kKills << " kills from outside, " << unfinished << " inside a save, " << last
            << " steps\n";
  EXPECT_GT(last, 1);
  EXPECT_GT(unfinished, kKills / 10);
}

}  // namespace
}  // namespace reprise::sim
