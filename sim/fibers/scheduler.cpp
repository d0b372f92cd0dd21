#include "sim/fibers/scheduler.hpp"

#include <algorithm>
#include <exception>
#include <sstream>

#include "core/base/check.hpp"
#include "core/base/codes.hpp"

namespace reprise::sim {

enum class Scheduler::State : std::uint8_t { kRunnable, kRunning, kBlocked, kDoomed, kEnded };

struct Scheduler::Record {
  GlobalRank owner;
  std::unique_ptr<Fiber> fiber;
  std::function<void(const FiberEnd&)> on_end;
  State state = State::kRunnable;
  std::uint64_t wait = 0;  // number of waits of this fiber so far
  Wake wake = Wake::kNotified;
  Waiting waiting;
  std::optional<std::uint64_t> timer;
  bool sleeping = false;  // true while the fiber is in sleep_until()
};

Scheduler::Scheduler(Stream choices, std::uint64_t switches_max, SchedulePlan plan)
    : chooser_(choices, std::move(plan)), switches_left_(switches_max) {}

Scheduler::~Scheduler() = default;

Scheduler::Record& Scheduler::current() {
  CHECK(current_.has_value());
  return *fibers_[*current_];
}

void Scheduler::spawn(GlobalRank owner, std::function<void()> body,
                      std::function<void(const FiberEnd&)> on_end) {
  CHECK(!is_dead(owner), owner);
  auto record = std::make_unique<Record>();
  record->owner = owner;
  record->fiber = std::make_unique<Fiber>(std::move(body));
  record->on_end = std::move(on_end);
  runnable_.push_back(fibers_.size());
  fibers_.push_back(std::move(record));
  ++live_;
}

void Scheduler::run() {
  while (live_ > 0) {
    if (!doomed_.empty()) {
      unwind_next();
      continue;
    }
    fire_timers();
    if (!runnable_.empty()) {
      run_next();
    } else if (!advance_time()) {
      stop_all("no rank can go on");
    }
  }
}

void Scheduler::run_next() {
  const std::size_t chosen = chooser_.choose(runnable_);
  std::swap(runnable_[chosen], runnable_.back());
  const std::size_t fiber = runnable_.back();
  runnable_.pop_back();
  if (fibers_[fiber]->state != State::kRunnable) return;  // killed after it became runnable
  if (switches_left_ == 0) {
    runnable_.push_back(fiber);
    stop_all("the run does not come to an end; some rank polls for what never comes");
    return;
  }
  --switches_left_;
  now_ns_ += kSwitchNs;
  resume(fiber);
}

void Scheduler::resume(std::size_t fiber) {
  Record& record = *fibers_[fiber];
  record.state = State::kRunning;
  current_ = fiber;
  record.fiber->resume();
  current_.reset();
  if (record.fiber->finished()) {
    finish(fiber, record.fiber->end());
  } else if (record.state == State::kRunning) {
    make_runnable(fiber, Wake::kNotified);
  }
}

void Scheduler::finish(std::size_t fiber, const FiberEnd& end) {
  Record& record = *fibers_[fiber];
  record.state = State::kEnded;
  --live_;
  // Copied, because the fiber that is destroyed next owns `end`.
  const FiberEnd kept = end;  // NOLINT(performance-unnecessary-copy-initialization)
  record.fiber.reset();
  if (auto on_end = std::exchange(record.on_end, nullptr)) on_end(kept);
}

void Scheduler::unwind_next() {
  const std::size_t fiber = doomed_.back();
  doomed_.pop_back();
  Record& record = *fibers_[fiber];
  if (record.state == State::kEnded) return;
  if (!record.fiber->started()) return finish(fiber, {.killed = true});
  record.wake = Wake::kKilled;
  resume(fiber);
  CHECK(record.state == State::kEnded, record.owner);
}

void Scheduler::suspend_current() { fibers_[*current_]->fiber->suspend(); }

void Scheduler::yield() {
  require_alive();
  suspend_current();
  require_alive();
}

Wake Scheduler::wait(WaitQueue& queue, const Waiting& what,
                     std::optional<std::uint64_t> deadline_ns) {
  Record& self = current();
  if (is_dead(self.owner)) return Wake::kKilled;
  ++self.wait;
  self.state = State::kBlocked;
  self.waiting = what;
  queue.tickets_.push_back({.fiber = *current_, .wait = self.wait});
  if (deadline_ns) {
    self.timer = deadline_ns;
    timers_.emplace(*deadline_ns, *current_);
  }
  suspend_current();
  return self.wake;
}

void Scheduler::sleep_until(std::uint64_t wake_ns) {
  require_alive();
  Record& self = current();
  self.sleeping = true;
  ++sleeping_;
  WaitQueue nobody;
  wait(nobody, {.operation = "sleep"}, wake_ns);
  require_alive();
}

void Scheduler::require_alive() const {
  CHECK(current_.has_value());
  if (!is_dead(fibers_[*current_]->owner)) return;
  if (std::uncaught_exceptions() > 0) {
    throw Error(Code::kPeerFailed, "this rank was killed; its ports are dead",
                {.rank = fibers_[*current_]->owner});
  }
  throw RankKilled{};
}

std::size_t Scheduler::running() const {
  CHECK(current_.has_value());
  return *current_;
}

// Ends the wait of a blocked fiber; `wake` is the reason.
void Scheduler::make_runnable(std::size_t fiber, Wake wake) {
  Record& record = *fibers_[fiber];
  if (record.timer) timers_.erase({*record.timer, fiber});
  record.timer.reset();
  if (std::exchange(record.sleeping, false)) --sleeping_;
  record.wake = wake;
  if (wake == Wake::kKilled) {
    record.state = State::kDoomed;
    doomed_.push_back(fiber);
  } else {
    record.state = State::kRunnable;
    runnable_.push_back(fiber);
  }
}

void Scheduler::notify_all(WaitQueue& queue) {
  const auto tickets = std::exchange(queue.tickets_, {});
  for (const auto& ticket : tickets) {
    const Record& record = *fibers_[ticket.fiber];
    if (record.state == State::kBlocked && record.wait == ticket.wait) {
      make_runnable(ticket.fiber, Wake::kNotified);
    }
  }
}

void Scheduler::kill(GlobalRank rank) {
  if (!dead_.insert(rank).second) return;
  for (std::size_t fiber = 0; fiber < fibers_.size(); ++fiber) {
    if (fibers_[fiber]->owner == rank && fibers_[fiber]->state != State::kEnded) {
      make_runnable(fiber, Wake::kKilled);
    }
  }
  if (!current_ || current().owner != rank) return;
  suspend_current();  // fibers that started later unwind first
  throw RankKilled{};
}

void Scheduler::fire_timers() {
  while (!timers_.empty() && timers_.begin()->first <= now_ns_) {
    make_runnable(timers_.begin()->second, Wake::kDeadline);
  }
}

// Called when no fiber can run. If some fiber sleeps, advances time to the next timer. If none
// sleeps, all fibers wait for each other; returns false.
bool Scheduler::advance_time() {
  if (sleeping_ == 0) return false;
  now_ns_ = std::max(now_ns_, timers_.begin()->first);
  fire_timers();
  return true;
}

void Scheduler::stop_all(const std::string& why) {
  verdict_ = Error(passed_on::kHang, why + ": " + describe_waits());
  for (std::size_t fiber = 0; fiber < fibers_.size(); ++fiber) {
    if (fibers_[fiber]->state != State::kEnded) kill(fibers_[fiber]->owner);
  }
}

std::string Scheduler::describe_waits() const {
  std::string text;
  for (const auto& record : fibers_) {
    if (record->state == State::kEnded) continue;
    std::ostringstream line;
    line << "rank " << record->owner;
    if (record->state == State::kBlocked) {
      line << " waits in " << record->waiting.operation;
      if (record->waiting.group != nullptr) {
        line << " #" << record->waiting.sequence << " of group " << *record->waiting.group;
      }
    } else {
      line << " runs";
    }
    text += (text.empty() ? "" : "; ") + line.str();
  }
  return text;
}

}  // namespace reprise::sim
