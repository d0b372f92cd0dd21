#pragma once
// Holds the state that all ports of one rank share: whether the rank lives, and access to the
// scheduler, the event log and the recorder.

#include <initializer_list>
#include <string_view>

#include "sim/fibers/event_log.hpp"
#include "sim/fibers/scheduler.hpp"
#include "sim/world/recorder.hpp"
#include "sim/world/resource.hpp"

namespace reprise::sim {

class RankContext {
 public:
  /// Keeps references to all three, which must outlive this object. Without a recorder, nothing is
  /// recorded.
  RankContext(Scheduler& scheduler, EventLog& log, GlobalRank rank, Recorder* recorder = nullptr)
      : scheduler_(scheduler), log_(log), recorder_(recorder), rank_(rank) {}

  /// Begins a port call: lets other ranks run, then records the call. Throws if this rank is dead
  /// (see Scheduler::require_alive). No other rank runs during the rest of the call.
  void step(std::string_view kind, std::string_view where,
            std::initializer_list<std::uint64_t> numbers = {}) {
    scheduler_.yield();
    log_.record(rank_, kind, where, numbers);
  }
  /// The same for a call to the store, which the recorder gets, too. Before that, transfers `bytes`
  /// bytes, so the call takes effect when they have arrived.
  void step_in_store(Resource& store, std::string_view kind, std::string_view path,
                     std::initializer_list<std::uint64_t> numbers = {}, std::uint64_t bytes = 0) {
    const std::uint64_t begin_ns = scheduler_.now_ns();
    transfer(store, bytes);
    step(kind, path, numbers);
    if (recorder_ != nullptr) recorder_->store(rank_, {kind, path, bytes, begin_ns});
  }
  /// Records a call that does not affect other ranks, without letting other ranks run.
  void note(std::string_view kind, std::string_view where,
            std::initializer_list<std::uint64_t> numbers = {}) {
    scheduler_.require_alive();
    log_.record(rank_, kind, where, numbers);
  }

  /// Waits until the resource has transferred `bytes` bytes. Other ranks run meanwhile. Throws if
  /// this rank is dead.
  void transfer(Resource& resource, std::uint64_t bytes) {
    scheduler_.require_alive();
    wait_until(resource.take(scheduler_.now_ns(), bytes).end_ns);
  }
  /// Lets other ranks run until this moment of virtual time; returns at once if it has passed.
  void wait_until(std::uint64_t end_ns) {
    if (end_ns > scheduler_.now_ns()) scheduler_.sleep_until(end_ns);
  }

  bool is_dead() const { return scheduler_.is_dead(rank_); }
  GlobalRank rank() const { return rank_; }
  Scheduler& scheduler() { return scheduler_; }
  Recorder* recorder() { return recorder_; }  ///< null if nothing is recorded

 private:
  Scheduler& scheduler_;
  EventLog& log_;
  Recorder* recorder_;
  GlobalRank rank_;
};

}  // namespace reprise::sim
