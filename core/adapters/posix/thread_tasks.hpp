#pragma once
// Runs background work on a few threads.

#include <memory>

#include "reprise/ports.hpp"

namespace reprise {

/// Runs pieces of work on `thread_count` threads, in the order of the calls of start(). A piece may
/// start other pieces. It must not wait for a piece that is not running yet, because it occupies a
/// thread that the other piece may need. The destructor first runs all work that was started.
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
