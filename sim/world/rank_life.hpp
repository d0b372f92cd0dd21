#pragma once
// What the ports of one rank share: its life, its place in the schedule, its events.

#include <initializer_list>
#include <string_view>

#include "sim/world/event_log.hpp"
#include "sim/world/scheduler.hpp"

namespace reprise::sim {

class RankLife {
 public:
  /// Both are borrowed.
  RankLife(Scheduler& scheduler, EventLog& log, GlobalRank rank)
      : scheduler_(scheduler), log_(log), rank_(rank) {}

  /// Stands at the top of each port call: others may run first; then, unless the rank is dead (see
  /// Scheduler::require_alive), the call is recorded, and what follows happens at once.
  void step(std::string_view kind, std::string_view where,
            std::initializer_list<std::uint64_t> numbers = {}) {
    scheduler_.yield();
    log_.record(rank_, kind, where, numbers);
  }
  /// The same for calls that are no point of interest for other ranks.
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
