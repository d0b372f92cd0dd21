// A lock belongs to the process that took it: it ends with that process, whatever its children do,
// and a child can neither keep it nor give it back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "core/adapters/posix/posix_store.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using contracts::code_of;
using contracts::TemporaryDirectory;

/// Runs `body` in a forked child.
pid_t forked(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  return child;
}

void end(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

/// A pipe over which a child tells a number.
class Told {
 public:
  Told() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~Told() {
    for (const int one : ends_) ::close(one);
  }
  void tell(pid_t number) const {
    ASSERT_EQ(::write(ends_[1], &number, sizeof number), ssize_t{sizeof number});
  }
  pid_t hear() const {
    pid_t number = 0;
    EXPECT_EQ(::read(ends_[0], &number, sizeof number), ssize_t{sizeof number});
    return number;
  }

 private:
  std::array<int, 2> ends_ = {};
};

struct LockOwner : testing::Test {
  TemporaryDirectory directory;
  PosixStore store{directory.path()};

  bool is_free(const std::string& path = "run") {
    return code_of([&] { store.lock(path); }) != Code::kLocked;
  }
  std::string file(const std::string& name = ".run.lock") const {
    return directory.path() + "/" + name;
  }
};

TEST_F(LockOwner, that_is_killed_loses_the_lock_while_a_child_of_it_runs_on) {
  const Told told;
  const pid_t owner = forked([&] {
    const auto lock = store.lock("run");
    forked([&] {
      told.tell(::getpid());  // it runs, so it has dropped what it took over
      ::pause();
    });
    ::pause();
  });
  const pid_t worker = told.hear();
  EXPECT_FALSE(is_free());
  end(owner);
  EXPECT_EQ(::kill(worker, 0), 0) << "the worker runs on";
  EXPECT_TRUE(is_free());
  ::kill(worker, SIGKILL);
}

TEST_F(LockOwner, that_is_killed_loses_every_lock_while_grandchildren_run_on) {
  const Told told;
  const pid_t owner = forked([&] {
    const auto root = store.lock("run");
    PosixStore second(directory.path());  // another job of this process
    const auto other = second.lock("other");
    forked([&] {
      forked([&] {
        told.tell(::getpid());
        ::pause();
      });
    });
    ::pause();
  });
  const pid_t worker = told.hear();
  EXPECT_FALSE(is_free("run"));
  EXPECT_FALSE(is_free("other"));
  end(owner);
  EXPECT_TRUE(is_free("run"));
  EXPECT_TRUE(is_free("other"));
  ::kill(worker, SIGKILL);
}

TEST_F(LockOwner, keeps_the_lock_while_a_child_drops_its_copy_or_locks_another) {
  auto lock = store.lock("run");
  const pid_t child = forked([&] {
    const auto other = store.lock("other");  // may get the number of a descriptor that was closed
    lock.reset();
    if (!fs::exists(file()) || !fs::exists(file(".other.lock"))) ::_exit(1);
    if (is_free("run")) ::_exit(2);
    if (is_free("other")) ::_exit(3);
  });
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(file()));
  EXPECT_FALSE(is_free());
  lock.reset();
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_TRUE(is_free());
}

TEST_F(LockOwner, shares_no_lock_with_another_thread_of_its_process) {
  const auto lock = store.lock("run");
  std::optional<bool> free;
  std::thread([&] { free = is_free(); }).join();
  EXPECT_EQ(free, false);
}

TEST_F(LockOwner, is_told_when_an_earlier_save_of_its_process_has_the_lock) {
  const auto lock = store.lock("run");
  try {
    store.lock("run");
    FAIL() << "locked twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kLocked);
    EXPECT_THAT(error.message(), testing::HasSubstr("an earlier save of this process"));
  }
}

TEST_F(LockOwner, threads_lock_and_unlock_while_another_thread_forks) {
  std::atomic<bool> done = false;
  std::vector<std::thread> writers;
  for (int i = 0; i < 3; ++i) {
    writers.emplace_back([&, path = "run" + std::to_string(i)] {
      while (!done) store.lock(path);
    });
  }
  std::vector<pid_t> workers;
  for (int i = 0; i < 40; ++i) workers.push_back(forked([] { ::pause(); }));
  done = true;
  for (auto& writer : writers) writer.join();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(is_free("run" + std::to_string(i)));
  for (const pid_t worker : workers) end(worker);
}

TEST_F(LockOwner, is_named_to_who_asks_until_it_is_killed) {
  const Told told;
  const pid_t owner = forked([&] {
    const auto lock = store.lock("run");
    told.tell(0);
    ::pause();
  });
  told.hear();
  EXPECT_THAT(store.lock_holder("run").value_or(""),
              testing::HasSubstr("process " + std::to_string(owner)));
  EXPECT_FALSE(is_free());
  end(owner);
  EXPECT_TRUE(fs::exists(file()));
  EXPECT_FALSE(store.lock_holder("run")) << "its file alone holds nothing";
}

TEST_F(LockOwner, is_not_kept_from_a_lock_by_who_asks) {
  std::vector<pid_t> curious;
  for (int i = 0; i < 2; ++i) {
    curious.push_back(forked([&] {
      for (;;) store.lock_holder("run");
    }));
  }
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(is_free());
  const auto lock = store.lock("run");
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(is_free());
  for (const pid_t process : curious) end(process);
}

TEST_F(LockOwner, when_killed_leaves_a_file_that_the_next_writer_removes) {
  const Told told;
  const pid_t owner = forked([&] {
    const auto lock = store.lock("iter_0000001");
    told.tell(0);
    ::pause();
  });
  told.hear();
  EXPECT_THAT(store.remove_dead_locks(""), testing::IsEmpty()) << "it is held";
  end(owner);
  std::ofstream(file(".mine.lock")) << "of another program";
  std::ofstream empty(file(".empty.lock"));
  empty.close();
  fs::create_symlink("nowhere", file(".link.lock"));
  EXPECT_THAT(store.remove_dead_locks(""), testing::ElementsAre(".iter_0000001.lock"));
  EXPECT_FALSE(fs::exists(file(".iter_0000001.lock")));
  EXPECT_TRUE(fs::exists(file(".mine.lock")));
  EXPECT_TRUE(fs::exists(file(".empty.lock")));
  EXPECT_TRUE(fs::is_symlink(file(".link.lock")));
}

}  // namespace
}  // namespace reprise
