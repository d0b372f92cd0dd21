#pragma once
// Does each task when it is started, on the caller's thread.

#include <exception>
#include <memory>
#include <utility>

#include "reprise/ports.hpp"

namespace reprise {

class TasksAtOnce final : public Tasks {
 public:
  std::unique_ptr<Task> start(std::function<void()> work) override {
    std::exception_ptr failure;
    try {
      work();
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    return std::make_unique<Done>(failure);
  }

 private:
  class Done final : public Task {
   public:
    // NOLINTNEXTLINE(bugprone-throw-keyword-missing): the exception is kept for wait()
    explicit Done(std::exception_ptr failure) : failure_(std::move(failure)) {}
    bool done() override { return true; }
    void wait() override {
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

   private:
    std::exception_ptr failure_;
  };
};

}  // namespace reprise
