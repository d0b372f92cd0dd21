#include "core/adapters/posix/thread_tasks.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.hpp"

namespace reprise {
namespace {

class ThreadTask final : public Task {
 public:
  explicit ThreadTask(std::shared_future<void> result) : result_(std::move(result)) {}
  ~ThreadTask() override { result_.wait(); }
  ThreadTask(const ThreadTask&) = delete;
  ThreadTask& operator=(const ThreadTask&) = delete;

  bool done() override {
    return result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  void wait() override {
    result_.wait();
    if (!asked_.exchange(true)) result_.get();
  }

 private:
  const std::shared_future<void> result_;
  std::atomic<bool> asked_ = false;  // true once wait() was called; only the first wait() rethrows
};

/// More threads of one rank do not make a store faster, and each holds memory.
constexpr int kUsualMost = 8;

}  // namespace

int threads_or_usual(int asked) {
  if (asked != 0) return asked;
  cpu_set_t allowed;
  const bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  return std::clamp(known ? CPU_COUNT(&allowed) : 1, 1, kUsualMost);
}

struct ThreadTasks::Pool {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::packaged_task<void()>> queue;
  bool closing = false;
  std::vector<std::jthread> threads;

  // Returns the next task; an empty one if the pool is closing and no task is left.
  std::packaged_task<void()> take() {
    std::unique_lock lock(mutex);
    wake.wait(lock, [this] { return closing || !queue.empty(); });
    if (queue.empty()) return {};
    auto work = std::move(queue.front());
    queue.pop_front();
    return work;
  }

  void close() {
    {
      const std::lock_guard lock(mutex);
      closing = true;
    }
    wake.notify_all();
    threads.clear();  // joins the threads
  }

  void run() {
    for (auto work = take(); work.valid(); work = take()) work();
  }
};

ThreadTasks::ThreadTasks(int thread_count) : pool_(std::make_unique<Pool>()) {
  CHECK(thread_count > 0, thread_count);
  try {
    for (int i = 0; i < thread_count; ++i) {
      pool_->threads.emplace_back([pool = pool_.get()] { pool->run(); });
    }
  } catch (const std::exception&) {
    pool_->close();
    throw;
  }
}

ThreadTasks::~ThreadTasks() { pool_->close(); }

int ThreadTasks::threads() const { return static_cast<int>(pool_->threads.size()); }

std::unique_ptr<Task> ThreadTasks::start(std::function<void()> work) {
  std::packaged_task<void()> piece(std::move(work));
  auto result = piece.get_future().share();
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->queue.push_back(std::move(piece));
  }
  pool_->wake.notify_one();
  return std::make_unique<ThreadTask>(std::move(result));
}

}  // namespace reprise
