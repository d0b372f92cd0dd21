// Runs two real processes that use the same path of a real file system at the same time: two
// writers, or a writer and a reader. Of two writers, one gets access to the path; the other fails
// with a named error, or waits until the first one is done. The content found afterwards is always
// complete, and comes from one writer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>

#include "core/checkpoint/generations.hpp"
#include "core/load/load.hpp"
#include "core/ports/no_progress.hpp"
#include "core/ports/passing_store.hpp"
#include "core/reshard/reshard.hpp"
#include "core/save/save.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/sim/faults/fault_world.hpp"

namespace reprise::sim {
namespace {

using contracts::run_ranks;
using contracts::TemporaryDirectory;

constexpr int kTrials = 300;
/// Every sixth trial pauses the first writer in its save until the other process has ended.
constexpr int kStill = 6;

/// Uses a file system in memory if there is one. This is enough, since no trial crashes the
/// machine.
const bool kInMemory = ::access("/dev/shm", W_OK) == 0 && ::setenv("TMPDIR", "/dev/shm", 1) == 0;

/// Exit status of a process.
enum Exit { kDone = 0, kLocked = 10, kThere = 11, kReplacedMeanwhile = 12, kOther = 13 };

int exit_of(const Error& error) {
  if (error.code() == Code::kLocked) return kLocked;
  if (error.code() == Code::kUsage) return kThere;
  if (error.code() == Code::kStaleMetadata) return kReplacedMeanwhile;
  std::cerr << error.what() << '\n';
  return kOther;
}

/// Makes one process wait until another process opens the gate.
class Gate {
 public:
  Gate() { CHECK(::pipe(ends_.data()) == 0); }
  ~Gate() {
    for (const int end : ends_) ::close(end);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open(int count = 1) const {
    for (int i = 0; i < count; ++i) CHECK(::write(ends_[1], "x", 1) == 1);
  }
  void wait() const {
    char byte = 0;
    CHECK(::read(ends_[0], &byte, 1) == 1);
  }

 private:
  std::array<int, 2> ends_ = {};
};

/// Runs `body` in a child process.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    try {
      body();
      std::_Exit(kDone);
    } catch (const Error& error) {
      std::_Exit(exit_of(error));
    } catch (const std::exception& error) {
      std::cerr << error.what() << '\n';
      std::_Exit(kOther);
    }
  }
  void kill() const { ::kill(pid_, SIGKILL); }
  int exit() const {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

/// A store that pauses the process before the first payload file is created.
class StillStore final : public PassingStore {
 public:
  StillStore(Store& inner, const Gate& arrived, const Gate& go_on)
      : PassingStore(inner), arrived_(arrived), go_on_(go_on) {}
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    if (path.ends_with(".distcp") && !std::exchange(stood_, true)) {
      arrived_.open();
      go_on_.wait();
    }
    return PassingStore::create(path);
  }

 private:
  const Gate& arrived_;
  const Gate& go_on_;
  bool stood_ = false;
};

using Program = std::function<void(const Ports&)>;

/// Runs two processes at the same time. Returns their exit statuses. If `still` is true, the first
/// process pauses in its save.
std::array<int, 2> run_two(const std::string& directory, bool still, const Program& first,
                           const Program& second) {
  const Gate start;
  const Gate arrived;
  const Gate go_on;
  const auto wrap = [&](Store& store, GlobalRank) -> std::unique_ptr<Store> {
    return still ? std::make_unique<StillStore>(store, arrived, go_on) : nullptr;
  };
  const Child one([&] {
    start.wait();
    run_ranks(1, directory, first, wrap);
  });
  if (still) {
    start.open();
    arrived.wait();
  }
  const Child two([&] {
    start.wait();
    run_ranks(1, directory, second);
  });
  start.open(still ? 1 : 2);
  if (!still) {
    const int of_one = one.exit();
    return {of_one, two.exit()};
  }
  const int of_two = two.exit();
  go_on.open();
  return {one.exit(), of_two};
}

void save(const Ports& ports, std::int64_t content, std::int64_t step,
          std::optional<std::int32_t> keep = {}) {
  SmallState state(ports.fabric.rank(), ports.fabric.world_size());
  state.become(content);
  SaveOptions options;
  options.directory = kRoot;
  options.step = step;
  options.keep = keep;
  auto group = ports.fabric.communicator(Group::world(ports.fabric.world_size()));
  Save::begin(ports, group, state.leaves(), options).finish();
}

std::int64_t load(const Ports& ports, const std::string& path) {
  SmallState state(ports.fabric.rank(), ports.fabric.world_size());
  LoadOptions options;
  options.directory = path;
  options.checksums = LoadChecksums::kVerified;
  auto group = ports.fabric.communicator(Group::world(ports.fabric.world_size()));
  reprise::load(ports, *group, state.leaves(), options);
  return state.step().value_or(-1);
}

std::int64_t loaded(const std::string& directory, const std::string& path) {
  std::int64_t content = -1;
  run_ranks(1, directory, [&](const Ports& ports) { content = load(ports, path); });
  return content;
}

void reshard_into_out(const Ports& ports, const std::string& from, bool replace) {
  Checkpoint source = Checkpoint::open(ports.store, from);
  NoProgress progress;
  ReshardOptions options;
  options.rule = [](const std::string&, const Dims& shape) -> std::optional<Cut> {
    return shape.empty() ? std::nullopt : std::optional(Cut{0, 2});
  };
  options.writers = 2;
  CommitTarget target{"out"};
  target.replace = replace;
  reshard(source, target, options, {ports.store, ports.device, ports.tasks, ports.trace, progress});
}

/// Requires that the two processes left behind neither a set-aside directory nor a lock.
void expect_clean(const std::string& directory, const std::string& root) {
  PosixStore store(directory);
  for (const Entry& entry : store.list(root)) {
    EXPECT_FALSE(aside_name(entry.name)) << entry.name;
    EXPECT_FALSE(entry.name.ends_with(".lock")) << entry.name;
  }
}

using Exits = std::map<std::array<int, 2>, int>;

void expect_one_was_refused(const Exits& exits, const std::string& what) {
  int refused = 0;
  int done = 0;
  for (const auto& [exit, times] : exits) {
    std::cout << what << ": exits " << exit[0] << " and " << exit[1] << ", " << times << " times\n";
    for (const int one : exit) {
      EXPECT_NE(one, kOther);
      EXPECT_NE(one, -1);
      refused += one == kLocked ? times : 0;
      done += one == kDone ? times : 0;
    }
  }
  EXPECT_GE(refused, kTrials / kStill);
  EXPECT_GE(done, kTrials);
}

/// Requires that the content found is the one of a writer whose save succeeded.
void expect_of_one(const std::array<int, 2>& exits, std::int64_t found) {
  ASSERT_TRUE(found == 1 || found == 2) << "a mixture";
  EXPECT_EQ(exits[static_cast<std::size_t>(found - 1)], kDone) << found;
}

TEST(Writers, two_saves_of_one_iteration_leave_one_of_them) {
  Exits exits;
  for (int i = 0; i < kTrials && !HasFailure(); ++i) {
    const TemporaryDirectory directory;
    const auto exit = run_two(
        directory.path(), i % kStill == 0, [](const Ports& ports) { save(ports, 1, 5); },
        [](const Ports& ports) { save(ports, 2, 5); });
    ++exits[exit];
    expect_of_one(exit, loaded(directory.path(), kRoot));
    expect_clean(directory.path(), kRoot);
  }
  expect_one_was_refused(exits, "one iteration");
}

TEST(Writers, two_saves_that_keep_one_leave_a_tracker_that_names_it) {
  Exits exits;
  for (int i = 0; i < kTrials && !HasFailure(); ++i) {
    const TemporaryDirectory directory;
    run_ranks(1, directory.path(), [](const Ports& ports) { save(ports, 0, 1); });
    const auto exit = run_two(
        directory.path(), i % kStill == 0, [](const Ports& ports) { save(ports, 1, 11, 1); },
        [](const Ports& ports) { save(ports, 2, 12, 1); });
    ++exits[exit];
    expect_of_one(exit, loaded(directory.path(), kRoot));
    expect_clean(directory.path(), kRoot);
  }
  expect_one_was_refused(exits, "different steps");
}

TEST(Writers, two_reshards_into_one_directory_leave_one_of_them) {
  const TemporaryDirectory directory;
  for (const std::int64_t step : {1, 2}) {
    run_ranks(1, directory.path(), [&](const Ports& ports) { save(ports, step, step); });
  }
  Exits exits;
  for (int i = 0; i < kTrials && !HasFailure(); ++i) {
    PosixStore(directory.path()).remove("out");
    const bool replace = i % 2 == 0;
    const auto exit = run_two(
        directory.path(), i % kStill == 0,
        [&](const Ports& ports) { reshard_into_out(ports, "run/iter_0000001", replace); },
        [&](const Ports& ports) { reshard_into_out(ports, "run/iter_0000002", replace); });
    ++exits[exit];
    expect_of_one(exit, loaded(directory.path(), "out"));
    EXPECT_TRUE(replace || (exit[0] == kDone) != (exit[1] == kDone));
    expect_clean(directory.path(), "");
  }
  expect_one_was_refused(exits, "reshard");
}

TEST(Writers, a_lock_dies_with_its_owner_and_what_it_left_is_cleared) {
  for (int i = 0; i < 20; ++i) {
    const TemporaryDirectory directory;
    const Gate arrived;
    const Gate never;
    const Child dying([&] {
      run_ranks(
          1, directory.path(), [](const Ports& ports) { save(ports, 1, 5); },
          [&](Store& store, GlobalRank) {
            return std::make_unique<StillStore>(store, arrived, never);
          });
    });
    arrived.wait();
    dying.kill();
    EXPECT_EQ(dying.exit(), -1);
    run_ranks(1, directory.path(), [](const Ports& ports) { save(ports, 2, 5); });
    EXPECT_EQ(loaded(directory.path(), kRoot), 2);
    expect_clean(directory.path(), kRoot);
  }
}

TEST(Writers, the_one_that_is_refused_is_told_who_holds_the_place) {
  const TemporaryDirectory directory;
  PosixStore store(directory.path());
  const auto held = store.lock("out");
  PosixStore other(directory.path());
  try {
    other.lock("out");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kLocked);
    EXPECT_EQ(error.place().file, directory.path() + "/out");
    EXPECT_THAT(error.message(),
                testing::HasSubstr("process " + std::to_string(::getpid()) + " on host "));
    EXPECT_THAT(error.message(), testing::ContainsRegex("since 2[0-9]+-[0-9]+-[0-9]+T"));
  }
}

constexpr std::size_t kSeen = 30;  // the loads must return at least this many different saves
constexpr int kLoadsMax = 100'000;

TEST(Writers, a_load_beside_a_writer_is_of_one_save) {
  const TemporaryDirectory directory;
  run_ranks(1, directory.path(), [](const Ports& ports) { save(ports, 0, 1); });
  const Child writer([&] {
    for (std::int64_t content = 1;; ++content) {
      run_ranks(1, directory.path(), [&](const Ports& ports) { save(ports, content, 1); });
    }
  });
  std::map<std::int64_t, int> seen;
  int refused = 0;
  int loads = 0;
  for (; (loads < kTrials || seen.size() < kSeen) && loads < kLoadsMax; ++loads) {
    if (HasFailure()) break;
    try {
      const std::int64_t content = loaded(directory.path(), kRoot);
      EXPECT_GE(content, 0) << "a mixture";
      ++seen[content];
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kStaleMetadata) << error.what();
      ++refused;
    }
  }
  writer.kill();
  writer.exit();
  std::cout << loads << " loads beside a writer: of " << seen.size() << " saves, " << refused
            << " refused\n";
  EXPECT_GE(seen.size(), kSeen);
}

}  // namespace
}  // namespace reprise::sim
