#pragma once
// Queues saves while the job keeps training. Background tasks write them. The job's own thread
// commits them when it polls. All ranks commit them in the order in which they began:
//
//   begin A   train   poll   train   poll: A ends   train   begin B   train   finalize: B ends
//
// Megatron's queue of asynchronous saves works the same way, except that this queue is bounded: if
// the maximum number of saves is in flight, begin first finishes the oldest one. This also bounds
// staging.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "reprise/error.hpp"
#include "reprise/save.hpp"

namespace reprise REPRISE_API {

/// Outcome of a queued save.
struct EndedSave {
  SaveResult result;  ///< empty if the save failed
  /// Error of a failed save, the same on all ranks. A failed save normally leaves nothing visible.
  /// There are two exceptions: its checkpoint was confirmed, but the tracker could not be updated;
  /// or the old checkpoint could not be put back in its place.
  std::optional<Error> error;
};

/// Saves in flight, oldest first. All calls are collective over the ranks of these saves, and all
/// ranks must begin the same saves. A save ends only during a call of this class; a save that
/// cannot start ends during begin. When a save ends, its `on_end` is called on the job's thread. If
/// `on_end` throws, the call passes the exception on, but the save has ended.
class SaveQueue {
 public:
  using OnEnd = std::function<void(const EndedSave&)>;

  /// At most `in_flight_max` saves are in flight, and each has its own staging. Throws USAGE if
  /// that is 0.
  explicit SaveQueue(std::size_t in_flight_max = 1);
  /// Waits for background work. Does not commit saves that are still in flight.
  ~SaveQueue();
  SaveQueue(const SaveQueue&) = delete;
  SaveQueue& operator=(const SaveQueue&) = delete;

  /// Waits until a slot is free and no save in flight writes the checkpoint that `options` names.
  /// Then begins a save as begin_save does.
  void begin(Job& job, const State& state, const SaveOptions& options, const OnEnd& on_end);
  /// The same, for a save that `save` begins with these options, such as by a share of writes.
  void begin(const SaveOptions& options, const std::function<SaveInFlight()>& save,
             const OnEnd& on_end);
  /// Waits until the copies of all saves in flight are done. A job whose saves return when their
  /// copies are queued (BeginReturns) calls this before it changes its state or moves it, such as
  /// before the optimizer's step.
  void wait_for_staging();
  /// Commits saves that are durable on all ranks, oldest first. Does not wait for saves that are
  /// not durable yet. Call it after each iteration.
  void poll();
  /// Waits for all saves and commits them. Call it before a load and before the job exits.
  void finalize();

  std::size_t in_flight() const;
  /// Returns the upper limit on this rank's staging for all saves in flight together, in bytes.
  std::uint64_t bound_staging() const;

 private:
  struct Saves;
  std::unique_ptr<Saves> saves_;
};

}  // namespace REPRISE_API
