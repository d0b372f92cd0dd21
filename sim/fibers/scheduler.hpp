#pragma once
// Runs all fibers on one thread in virtual time. A seeded random stream decides the order.

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
#include "sim/fibers/fiber_chooser.hpp"

namespace reprise::sim {

/// The operation that a fiber waits for, as named in verdicts. Borrows `group` during the wait.
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
    std::uint64_t wait;  // index of the fiber's wait; tickets of earlier waits are ignored
  };
  std::vector<Ticket> tickets_;
};

class Scheduler {
 public:
  static constexpr std::uint64_t kSwitchNs = 1000;  ///< virtual time that a switch takes

  /// A run with more than `switches_max` switches counts as a deadlock: some rank polls for an
  /// event that never comes.
  Scheduler(Stream choices, std::uint64_t switches_max, SchedulePlan plan = {});
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Adds a fiber of `owner` that is ready to run. After the fiber has ended, calls `on_end`
  /// outside of all fibers.
  void spawn(GlobalRank owner, std::function<void()> body,
             std::function<void(const FiberEnd&)> on_end);
  /// Runs until every fiber has ended. If no fiber can continue, sets the verdict and kills all
  /// fibers.
  void run();
  /// Returns DEADLOCK with the operation that each rank waits for; nothing if the run had no
  /// deadlock.
  const std::optional<Error>& verdict() const { return verdict_; }

  // ---- calls from inside a fiber

  /// Lets other fibers run if the schedule says so. Does not return in a killed rank.
  void yield();
  /// Blocks until a notification or `deadline_ns`. Never throws, because destructors of a killed
  /// rank call it.
  Wake wait(WaitQueue& queue, const Waiting& what, std::optional<std::uint64_t> deadline_ns = {});
  void sleep_until(std::uint64_t wake_ns);
  /// Throws RankKilled if the running fiber's rank is dead. If that rank is already unwinding,
  /// throws an Error instead, since a destructor that catches Errors must not end the program.
  void require_alive() const;
  /// Returns the number of the running fiber. Fibers have numbers in the order of their spawn.
  std::size_t running() const;

  // ---- calls from anywhere

  void notify_all(WaitQueue& queue);
  /// Kills all fibers of the rank. Fibers that started later are killed first, since background
  /// work may use the stack of the fiber that started it. Does not return if the calling fiber
  /// belongs to the rank. A second call does nothing.
  void kill(GlobalRank rank);
  bool is_dead(GlobalRank rank) const { return dead_.contains(rank); }
  std::uint64_t now_ns() const { return now_ns_; }
  /// Returns how often a fiber was chosen so far.
  std::uint64_t decisions() const { return chooser_.decisions(); }
  /// Returns the number of fibers so far, those that have ended included.
  std::size_t fibers() const { return fibers_.size(); }

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
  void stop_all(const std::string& why);
  std::string describe_waits() const;

  FiberChooser chooser_;
  std::uint64_t switches_left_;
  std::uint64_t now_ns_ = 0;
  std::vector<std::unique_ptr<Record>> fibers_;
  std::vector<std::size_t> runnable_;
  std::vector<std::size_t> doomed_;
  std::set<std::pair<std::uint64_t, std::size_t>> timers_;  // pairs of time and fiber
  std::size_t sleeping_ = 0;
  std::size_t live_ = 0;
  std::optional<std::size_t> current_;
  std::set<GlobalRank> dead_;
  std::optional<Error> verdict_;
};

}  // namespace reprise::sim
