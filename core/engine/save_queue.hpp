#pragma once
// Saves beside a job that trains on. The background writes them; the job's own thread commits them
// where it asks for it, on all ranks alike, in the order in which they were begun:
//
//   begin A   train   poll   train   poll: A stands   train   begin B   train   finalize: B stands
//
// As Megatron's queue of asynchronous saves does it. Ours has an end: where as many are in flight
// as may be, begin finishes the oldest one first, so that staging is bounded.

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/engine/phases.hpp"
#include "core/engine/save.hpp"

namespace reprise {

/// What came of a save.
struct EndedSave {
  SaveReport report;  ///< empty if it failed
  /// The same on all ranks. Nothing of the save is then visible, but for two: one that was
  /// confirmed and that the tracker could not be made to name, and one that could not be swapped
  /// back.
  std::optional<Error> error;
};

/// All calls are collective over the groups of the saves in flight, which all ranks begin alike. A
/// save ends within one of them, at once if it can't begin: then its `on_end` is called, on the
/// job's thread; what that throws passes, and the save has ended all the same.
class SaveQueue {
 public:
  using OnEnd = std::function<void(const EndedSave&)>;
  /// Begins a save, as Save::begin does.
  using Begin = std::function<Save(const Ports&, std::shared_ptr<Communicator>, const StateDict&,
                                   SaveSettings)>;

  /// In flight are at most `in_flight_max`, each with staging of its own. `begin` begins each of
  /// them.
  explicit SaveQueue(std::size_t in_flight_max = 1, Begin begin = Save::begin);
  /// Waits for the background. What is still in flight is not committed.
  ~SaveQueue();
  SaveQueue(const SaveQueue&) = delete;
  SaveQueue& operator=(const SaveQueue&) = delete;

  /// Blocks until a slot is free and no save in flight targets this directory. Then begins as
  /// Save::begin: when it returns the job may change its state.
  void begin(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
             SaveSettings options, const OnEnd& on_end);
  /// Commits what is durable on all ranks, oldest first, and does not wait for the rest. After each
  /// iteration.
  void poll();
  /// Waits for all of them: before a load, and before the job exits.
  void finalize();

  std::size_t in_flight() const { return saves_.size(); }
  /// What this rank may hold for all that are in flight, together.
  std::uint64_t bound_staging() const;

 private:
  struct InFlight {
    Save save;
    std::string directory;
    OnEnd on_end;
  };
  /// Polls or, if it must, finishes the oldest one. False if it goes on.
  bool end_oldest(bool (*try_to_end)(Save&, SaveReport&));

  std::size_t in_flight_max_;
  Begin begin_;
  std::deque<InFlight> saves_;  ///< oldest first
};

/// Before the job exits, whatever its exit code: what it saved stands.
inline constexpr std::array<std::string_view, 1> kShutdownSteps = {"finalize"};
std::vector<ProtocolStep> shutdown_protocol(SaveQueue& saves);

}  // namespace reprise
