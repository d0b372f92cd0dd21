#include "sim/world/sim_tasks.hpp"

#include <exception>
#include <utility>

namespace reprise::sim {
namespace {

struct TaskState {
  bool wanted = false;  ///< late work waits until this is true
  bool done = false;
  std::exception_ptr failure = nullptr;
  WaitQueue waiting = {};
  WaitQueue late = {};
};

class SimTask final : public Task {
 public:
  SimTask(RankContext& life, std::shared_ptr<TaskState> state)
      : life_(life), state_(std::move(state)) {}
  ~SimTask() override { finish(); }
  SimTask(const SimTask&) = delete;
  SimTask& operator=(const SimTask&) = delete;

  bool done() override {
    life_.step("task done", "");
    return state_->done;
  }

  void wait() override {
    life_.step("task wait", "");
    finish();
    life_.scheduler().require_alive();
    if (auto failure = std::exchange(state_->failure, nullptr)) std::rethrow_exception(failure);
  }

 private:
  void finish() {
    state_->wanted = true;
    life_.scheduler().notify_all(state_->late);
    while (!state_->done && !life_.is_dead()) {
      life_.scheduler().wait(state_->waiting, {.operation = "a background task"});
    }
  }

  RankContext& life_;
  std::shared_ptr<TaskState> state_;
};

}  // namespace

std::unique_ptr<Task> SimTasks::start(std::function<void()> work) {
  life_.step("task start", "");
  auto state = std::make_shared<TaskState>();
  state->wanted = background_ == Background::kAnyTime;
  auto body = [state, work = std::move(work), &scheduler = life_.scheduler()] {
    while (!state->wanted) {
      scheduler.wait(state->late, {.operation = "somebody who waits for this work"});
      scheduler.require_alive();
    }
    work();
  };
  life_.scheduler().spawn(life_.rank(), std::move(body),
                          [state, &scheduler = life_.scheduler()](const FiberEnd& end) {
                            state->done = true;
                            state->failure = end.failure;
                            scheduler.notify_all(state->waiting);
                          });
  return std::make_unique<SimTask>(life_, std::move(state));
}

}  // namespace reprise::sim
