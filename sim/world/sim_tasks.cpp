#include "sim/world/sim_tasks.hpp"

#include <exception>
#include <utility>

namespace reprise::sim {
namespace {

struct Outcome {
  bool wanted = false;  ///< true: late work may begin
  bool done = false;
  std::exception_ptr failure = nullptr;
  WaitQueue waiting = {};
  WaitQueue late = {};
};

class SimTask final : public Task {
 public:
  SimTask(RankLife& life, std::shared_ptr<Outcome> outcome)
      : life_(life), outcome_(std::move(outcome)) {}
  ~SimTask() override { finish(); }
  SimTask(const SimTask&) = delete;
  SimTask& operator=(const SimTask&) = delete;

  bool done() override {
    life_.step("task done", "");
    return outcome_->done;
  }

  void wait() override {
    life_.step("task wait", "");
    finish();
    life_.scheduler().require_alive();
    if (auto failure = std::exchange(outcome_->failure, nullptr)) std::rethrow_exception(failure);
  }

 private:
  void finish() {
    outcome_->wanted = true;
    life_.scheduler().notify_all(outcome_->late);
    while (!outcome_->done && !life_.is_dead()) {
      life_.scheduler().wait(outcome_->waiting, {.operation = "a background task"});
    }
  }

  RankLife& life_;
  std::shared_ptr<Outcome> outcome_;
};

}  // namespace

std::unique_ptr<Task> SimTasks::start(std::function<void()> work) {
  life_.step("task start", "");
  auto outcome = std::make_shared<Outcome>();
  outcome->wanted = background_ == Background::kAnyTime;
  auto body = [outcome, work = std::move(work), &scheduler = life_.scheduler()] {
    while (!outcome->wanted) {
      scheduler.wait(outcome->late, {.operation = "somebody who waits for this work"});
      scheduler.require_alive();
    }
    work();
  };
  life_.scheduler().spawn(life_.rank(), std::move(body),
                          [outcome, &scheduler = life_.scheduler()](const FiberEnd& end) {
                            outcome->done = true;
                            outcome->failure = end.failure;
                            scheduler.notify_all(outcome->waiting);
                          });
  return std::make_unique<SimTask>(life_, std::move(outcome));
}

}  // namespace reprise::sim
