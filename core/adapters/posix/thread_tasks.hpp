#pragma once
// Runs background work on a few threads.

#include <memory>

#include "reprise/ports.hpp"

namespace reprise {

/// Runs work in the order in which it was started, `thread_count` pieces at a time. A piece may
/// start others, but it must not wait for a piece that is not running yet: it would occupy the
/// thread that the other one needs. The destructor first runs all work that was started.
class ThreadTasks final : public Tasks {
 public:
  explicit ThreadTasks(int thread_count);
  ~ThreadTasks() override;
  ThreadTasks(const ThreadTasks&) = delete;
  ThreadTasks& operator=(const ThreadTasks&) = delete;

  std::unique_ptr<Task> start(std::function<void()> work) override;

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace reprise
