// Tests that threads, host memory and the real clock satisfy the contracts of their ports.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "tests/contracts/device_contract.hpp"
#include "tests/contracts/tasks_contract.hpp"

namespace reprise::contracts {
namespace {

template <int kThreads>
struct Threads {
  void run(const std::function<void(Tasks&)>& body) {
    ThreadTasks tasks(kThreads);
    body(tasks);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(OneThread, TasksContract, Threads<1>);
INSTANTIATE_TYPED_TEST_SUITE_P(FourThreads, TasksContract, Threads<4>);

struct HostMemory {
  using Numbers = HostNumbers;
  void run(const std::function<void(Device&)>& body) {
    HostDevice device("node7", 3);
    body(device);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Host, DeviceContract, HostMemory);

TEST(HostDevice, is_known_by_node_and_index) {
  EXPECT_EQ(HostDevice("node7", 3).name(), "node7:3");
}

TEST(PosixClock, runs_on_and_not_backwards) {
  PosixClock clock;
  const auto before = clock.now_ns();
  EXPECT_GE(clock.now_ns(), before);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GE(clock.now_ns(), before + 2'000'000);
}

TEST(ThreadTasks, work_runs_beside_the_caller) {
  ThreadTasks tasks(1);
  std::mutex mutex;
  std::condition_variable changed;
  bool released = false;
  const auto task = tasks.start([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return released; });
  });
  EXPECT_FALSE(task->done());
  {
    const std::lock_guard lock(mutex);
    released = true;
  }
  changed.notify_all();
  task->wait();
}

TEST(ThreadTasks, pool_that_goes_first_finishes_what_was_started) {
  auto value = std::make_shared<std::atomic<int>>(0);
  std::unique_ptr<Task> last;
  {
    ThreadTasks tasks(1);
    for (int i = 0; i < 10; ++i) last = tasks.start([value] { ++*value; });
  }
  EXPECT_EQ(*value, 10);
  EXPECT_TRUE(last->done());
}

}  // namespace
}  // namespace reprise::contracts
