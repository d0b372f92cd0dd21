#pragma once
// Runs all fibers on one thread; the order comes from a seeded stream, time is virtual.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/random.hpp"
#include "reprise/error.hpp"
#include "reprise/mesh.hpp"
#include "reprise/types.hpp"
#include "sim/fibers/fiber.hpp"

namespace reprise::sim {

/// The operation that a fiber waits for, for verdicts. Borrows `group` during the wait.
struct Waiting {
  std::string_view operation;
  const Group* group = nullptr;
  std::uint64_t sequence = 0;
};

enum class Wake : std::uint8_t { kNotified, kDeadline, kKilled };

/// Fibers that wait for the same event.
class WaitQueue {
 private:
  friend class Scheduler;
  struct Ticket {
    std::size_t fiber;
    std::uint64_t wait;  // number of the fiber's wait; old ones are ignored
  };
  std::vector<Ticket> tickets_;
};

class Scheduler {
 public:
  /// Reports a deadlock if a run takes more than `switches_max` switches: ranks then poll for
  /// something that never happens.
  explicit Scheduler(Stream choices, std::uint64_t switches_max);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Adds a fiber of `owner`, ready to run. Calls `on_end` outside of all fibers when it has ended.
  void spawn(GlobalRank owner, std::function<void()> body,
             std::function<void(const FiberEnd&)> on_end);
  /// Runs until every fiber has ended. If none can continue, sets the verdict and kills all.
  void run();
  /// Returns DEADLOCK with the operation that each rank waits for; nothing if there was none.
  const std::optional<Error>& verdict() const { return verdict_; }

  // ---- from inside a fiber

  /// May let others run first. Does not return in a killed rank.
  void yield();
  /// Blocks until notified or `deadline_ns`. Never throws, since destructors of a killed rank wait.
  Wake wait(WaitQueue& queue, const Waiting& what, std::optional<std::uint64_t> deadline_ns = {});
  void sleep_until(std::uint64_t wake_ns);
  /// Throws RankKilled if the running fiber's rank is dead; throws an Error if that rank is already
  /// unwinding, because a destructor that catches Errors must not end the program.
  void require_alive() const;

  // ---- from anywhere

  void notify_all(WaitQueue& queue);
  /// Kills all fibers of the rank, the youngest first: background work may use the stack of the
  /// fiber that started it. Does not return to a killed caller. A second call does nothing.
  void kill(GlobalRank rank);
  bool is_dead(GlobalRank rank) const { return dead_.contains(rank); }
  std::uint64_t now_ns() const { return now_ns_; }

 private:
  struct Record;
  enum class State : std::uint8_t;

  Record& current();
  void suspend_current();
  void make_runnable(std::size_t fiber, Wake wake);
  void resume(std::size_t fiber);
  void finish(std::size_t fiber, const FiberEnd& end);
  void unwind_next();
  void run_next();
  void fire_timers();
  bool advance_time();
  void give_up(const std::string& why);
  std::string describe_waits() const;

  Stream choices_;
  std::uint64_t switches_left_;
  std::uint64_t now_ns_ = 0;
  std::vector<std::unique_ptr<Record>> fibers_;
  std::vector<std::size_t> runnable_;
  std::vector<std::size_t> doomed_;
  std::set<std::pair<std::uint64_t, std::size_t>> timers_;  // (time, fiber)
  std::size_t sleeping_ = 0;
  std::size_t live_ = 0;
  std::optional<std::size_t> current_;
  std::set<GlobalRank> dead_;
  std::optional<Error> verdict_;
};

}  // namespace reprise::sim
