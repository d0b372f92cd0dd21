// Tests how pieces of work are shared among threads.
#include "core/checkpoint/batches.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/adapters/posix/thread_tasks.hpp"

namespace reprise {
namespace {

TEST(DoAll, does_each_piece_once) {
  ThreadTasks tasks(4);
  std::vector<std::atomic<int>> done(100);
  do_all(tasks, done.size(),
         [&](std::size_t /*thread*/) { return [&](std::size_t i) { ++done[i]; }; });
  for (const auto& times : done) EXPECT_EQ(times, 1);
}

/// Piece 3 fails only after piece 7 has failed.
TEST(DoAll, throws_the_error_of_the_first_piece_that_failed) {
  ThreadTasks tasks(8);
  std::atomic<bool> seven_failed = false;
  std::string thrown;
  try {
    do_all(tasks, 8, [&](std::size_t /*thread*/) {
      return [&](std::size_t i) {
        if (i == 7) {
          seven_failed = true;
          throw std::runtime_error("7");
        }
        while (i == 3 && !seven_failed) std::this_thread::yield();
        if (i == 3) throw std::runtime_error("3");
      };
    });
  } catch (const std::runtime_error& error) {
    thrown = error.what();
  }
  EXPECT_EQ(thrown, "3");
}

}  // namespace
}  // namespace reprise
