#pragma once
// Who runs next. Fibers on one thread; the choice comes from a seeded stream, time is virtual.

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
#include "sim/world/fiber.hpp"

namespace reprise::sim {

/// What a fiber waits for, for verdicts. `group` is borrowed while it waits.
struct Waiting {
  std::string_view operation;
  const Group* group = nullptr;
  std::uint64_t sequence = 0;
};

enum class Wake : std::uint8_t { kNotified, kDeadline, kKilled };

/// Fibers that wait for one thing.
class WaitQueue {
 private:
  friend class Scheduler;
  struct Ticket {
    std::size_t fiber;
    std::uint64_t wait;  // which of the fiber's waits; an old one is ignored
  };
  std::vector<Ticket> tickets_;
};

class Scheduler {
 public:
  /// A run that takes more than `switches_max` switches is a deadlock verdict: ranks that poll for
  /// what never comes.
  explicit Scheduler(Stream choices, std::uint64_t switches_max);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// A fiber of `owner`, ready to run. `on_end` is called outside of all fibers when it ended.
  void spawn(GlobalRank owner, std::function<void()> body,
             std::function<void(const FiberEnd&)> on_end);
  /// Until every fiber has ended. If none can go on, that is the verdict, and all are killed.
  void run();
  /// DEADLOCK, naming what each rank waits for.
  const std::optional<Error>& verdict() const { return verdict_; }

  // ---- from inside a fiber

  /// Lets others run first, perhaps. A killed rank does not return from it.
  void yield();
  /// Until notified or `deadline_ns`. Never throws: a killed rank's destructors may wait, too.
  Wake wait(WaitQueue& queue, const Waiting& what, std::optional<std::uint64_t> deadline_ns = {});
  void sleep_until(std::uint64_t wake_ns);
  /// Throws RankKilled if the running fiber's rank is dead; an Error while that rank unwinds
  /// already, because a destructor that catches Errors must not end the program.
  void require_alive() const;

  // ---- from anywhere

  void notify_all(WaitQueue& queue);
  /// Kills all fibers of the rank, the youngest first: background work may look at the stack of the
  /// fiber that started it. From one of them it does not return. Again is no error.
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
