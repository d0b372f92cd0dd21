#pragma once
// Runs one life of a simulated job: new ranks on an existing store.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/clock.hpp"
#include "reprise/error.hpp"
#include "reprise/ports.hpp"
#include "sim/fibers/event_log.hpp"
#include "sim/fibers/fiber_chooser.hpp"
#include "sim/world/rates.hpp"
#include "sim/world/recorder.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/sim_tasks.hpp"

namespace reprise::sim {

struct WorldOptions {
  std::uint64_t seed = 0;
  std::int32_t world_size = 1;
  /// Limit on the virtual time for which a member of a collective call waits for the others. It
  /// matters only if a rank is slow: if all ranks wait for each other, the deadlock is found at
  /// once.
  std::optional<std::uint64_t> deadline_ns = 60'000'000'000;
  std::uint64_t switches_max = 500'000'000;
  /// Name of each rank's device, "node:index". If empty, rank n has "node0:<n>".
  std::vector<std::string> devices = {};
  /// True if there is a data fabric between the devices (Ports::data).
  bool device_fabric = false;
  Background background = Background::kAnyTime;
  SchedulePlan schedule = {};
  /// Says how long operations of store, devices and fabric take. By default they take no time.
  Rates rates = {};
  /// Records what the ranks do; null if nothing is recorded. Borrowed until run() returns.
  Recorder* recorder = nullptr;
  /// Gets the calls that the event hash is made of, in the same order; null if nobody wants them.
  LoggedEvents calls = {};
};

enum class RankEnd : std::uint8_t {
  kReturned,
  kFailed,  ///< the rank ended with an Error
  kDefect,  ///< the rank ended with another exception, such as a failed CHECK
  kKilled,
  kHung  ///< the rank was alive when the world deadlocked or did not finish
};
std::string_view name_of(RankEnd end);

/// An event of the engine's trace.
struct TraceRecord {
  std::string phase;
  std::string detail;
  std::uint64_t bytes = 0;
  std::uint64_t items = 0;
  Moment moment = Moment::kEnd;
  std::uint64_t at_ns = 0;  ///< virtual time of the event
};

struct RankOutcome {
  RankEnd end = RankEnd::kReturned;
  std::optional<Error> error = {};  ///< for kFailed the rank's error; for kHung the world's verdict
  std::string message = {};         ///< text of the exception if it is not an Error
  std::uint64_t event_hash = 0;
  std::vector<TraceRecord> trace = {};
};

struct RunResult {
  std::vector<RankOutcome> ranks;
  std::uint64_t event_hash = 0;  ///< hash of all ranks' events, in the order in which they happened
  std::uint64_t events = 0;
  std::uint64_t decisions = 0;         ///< how often the scheduler chose a fiber
  std::uint64_t fibers = 0;            ///< ranks and their background tasks
  std::uint64_t duration_ns = 0;       ///< virtual time that the run took
  std::optional<Error> deadlock = {};  ///< the verdict if there was a deadlock
};

class World {
 public:
  /// Keeps a reference to the store, which must outlive this object. The result of a run depends
  /// only on the options, the store's content and the ranks' own code.
  World(WorldOptions options, Store& store);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Runs `rank_main` once per rank until all have ended. May be called once per World.
  RunResult run(const std::function<void(Ports&, GlobalRank)>& rank_main);

  /// Ends a rank as a crash would: no later call of the rank reaches the world, and its stack is
  /// unwound. Peers that wait for the rank get PEER_FAILED. Does not return if a rank kills itself.
  void kill(GlobalRank rank);
  /// Pauses the calling rank for this long.
  void sleep(std::uint64_t duration_ns);
  /// Pauses the caller, a rank or a task, for as long as a checksum of so many bytes takes.
  /// Computing passes through no port, so whoever replaces the engine's seam for it
  /// (StageSeams::order) calls this.
  void compute_checksum(std::uint64_t bytes);
  /// Returns the virtual clock that all ranks share.
  Clock& clock();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::sim
