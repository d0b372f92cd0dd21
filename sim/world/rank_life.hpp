#pragma once
// Holds the state that all ports of one rank share: whether the rank lives, and access to the
// scheduler and the event log.

#include <initializer_list>
#include <string_view>

#include "sim/fibers/event_log.hpp"
#include "sim/fibers/scheduler.hpp"

namespace reprise::sim {

class RankLife {
 public:
  /// Keeps references to the scheduler and the log, which must outlive this object.
  RankLife(Scheduler& scheduler, EventLog& log, GlobalRank rank)
      : scheduler_(scheduler), log_(log), rank_(rank) {}

  /// Begins a port call: lets other ranks run, then records the call. Throws if this rank is dead
  /// (see Scheduler::require_alive). No other rank runs during the rest of the call.
  void step(std::string_view kind, std::string_view where,
            std::initializer_list<std::uint64_t> numbers = {}) {
    scheduler_.yield();
    log_.record(rank_, kind, where, numbers);
  }
  /// Records a call that does not affect other ranks, without letting other ranks run.
  void note(std::string_view kind, std::string_view where,
            std::initializer_list<std::uint64_t> numbers = {}) {
    scheduler_.require_alive();
    log_.record(rank_, kind, where, numbers);
  }

  bool is_dead() const { return scheduler_.is_dead(rank_); }
  GlobalRank rank() const { return rank_; }
  Scheduler& scheduler() { return scheduler_; }

 private:
  Scheduler& scheduler_;
  EventLog& log_;
  GlobalRank rank_;
};

}  // namespace reprise::sim
