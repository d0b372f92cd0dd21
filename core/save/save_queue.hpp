#pragma once
// Queues saves while the job keeps training. The background writes them; the job's own thread
// commits them when it polls, alike on all ranks, in the order they began:
//
//   begin A   train   poll   train   poll: A stands   train   begin B   train   finalize: B stands
//
// Megatron's queue of asynchronous saves works like this. This one is bounded: if the maximum is in
// flight, begin finishes the oldest save first, so that staging is bounded too.

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/save/phases.hpp"
#include "core/save/save.hpp"

namespace reprise {

/// Outcome of a save.
struct EndedSave {
  SaveReport report;  ///< empty if it failed
  /// The same on all ranks. Nothing of a failed save is visible, with two exceptions: one
  /// that is confirmed but could not be put in the tracker, and one that could not be swapped
  /// back.
  std::optional<Error> error;
};

/// All calls are collective over the groups of the saves in flight; all ranks begin the same ones.
/// A save ends within one of these calls, even within begin if it cannot start. Then its `on_end`
/// is called on the job's thread; an exception from it propagates, but the save has still ended.
class SaveQueue {
 public:
  using OnEnd = std::function<void(const EndedSave&)>;
  /// Begins a save, like Save::begin.
  using Begin = std::function<Save(const Ports&, std::shared_ptr<Communicator>, const StateDict&,
                                   SaveSettings)>;

  /// At most `in_flight_max` saves are in flight, each with its own staging. `begin` starts each of
  /// them.
  explicit SaveQueue(std::size_t in_flight_max = 1, Begin begin = Save::begin);
  /// Waits for the background. Saves still in flight are not committed.
  ~SaveQueue();
  SaveQueue(const SaveQueue&) = delete;
  SaveQueue& operator=(const SaveQueue&) = delete;

  /// Blocks until a slot is free and no save in flight targets this directory, then begins like
  /// Save::begin: on return the job may change its state.
  void begin(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
             SaveSettings options, const OnEnd& on_end);
  /// Commits saves that are durable on all ranks, oldest first, without waiting for the rest. Call
  /// it after each iteration.
  void poll();
  /// Waits for all saves and commits them: before a load, and before the job exits.
  void finalize();

  std::size_t in_flight() const { return saves_.size(); }
  /// Returns the most this rank may use for all saves in flight together.
  std::uint64_t bound_staging() const;

 private:
  struct InFlight {
    Save save;
    std::string directory;
    OnEnd on_end;
  };
  /// Polls or finishes the oldest save. False if it is still in flight.
  bool end_oldest(bool (*try_to_end)(Save&, SaveReport&));

  std::size_t in_flight_max_;
  Begin begin_;
  std::deque<InFlight> saves_;  ///< oldest first
};

/// Steps to run before the job exits, whatever its exit code, so that its saves are committed.
inline constexpr std::array<std::string_view, 1> kShutdownSteps = {"finalize"};
std::vector<ProtocolStep> shutdown_protocol(SaveQueue& saves);

}  // namespace reprise
