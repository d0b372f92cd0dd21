#pragma once
// Runs background work on a few threads.

#include <memory>

#include "reprise/ports.hpp"

namespace reprise {

/// Returns `asked`; if that is 0, the number of processors that this process may use, at most 8.
int threads_or_usual(int asked);

/// Runs tasks on `thread_count` threads, in the order in which start() received them. A task may
/// start other tasks, but must not wait for a task that is not running yet: the waiting task
/// occupies a thread that the other task may need. The destructor first runs all tasks that were
/// started.
class ThreadTasks final : public Tasks {
 public:
  explicit ThreadTasks(int thread_count);
  ~ThreadTasks() override;
  ThreadTasks(const ThreadTasks&) = delete;
  ThreadTasks& operator=(const ThreadTasks&) = delete;

  std::unique_ptr<Task> start(std::function<void()> work) override;
  int threads() const override;

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace reprise
