#pragma once
// One incarnation of a simulated job: fresh ranks around a store that was there before.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/clock.hpp"
#include "reprise/error.hpp"
#include "reprise/ports.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/sim_tasks.hpp"
#include "sim/world/sim_trace.hpp"

namespace reprise::sim {

struct WorldOptions {
  std::uint64_t seed = 0;
  std::int32_t world_size = 1;
  /// How long a member of a collective waits for the others, in virtual time. It matters where a
  /// rank is slow; where all ranks wait for each other, that is a deadlock at once.
  std::optional<std::uint64_t> deadline_ns = 60'000'000'000;
  std::uint64_t switches_max = 500'000'000;
  /// Identity of each rank's device, "node:index"; empty: "node0:<rank>".
  std::vector<std::string> devices = {};
  Background background = Background::kAnyTime;
};

enum class RankEnd : std::uint8_t {
  kReturned,
  kFailed,  ///< by an Error
  kDefect,  ///< by any other exception: CHECK, or something nobody expected
  kKilled,
  kHung  ///< it was alive when the world deadlocked or did not come to an end
};
std::string_view name_of(RankEnd end);

struct RankOutcome {
  RankEnd end = RankEnd::kReturned;
  std::optional<Error> error = {};  ///< kFailed; kHung: the verdict
  std::string message = {};         ///< of any other exception
  std::uint64_t event_hash = 0;
  std::vector<TraceRecord> trace = {};
};

struct RunResult {
  std::vector<RankOutcome> ranks;
  std::uint64_t event_hash = 0;  ///< of all ranks' events, in the order in which they happened
  std::uint64_t events = 0;
  std::uint64_t duration_ns = 0;       ///< virtual
  std::optional<Error> deadlock = {};  ///< the verdict, if there is one
};

class World {
 public:
  /// The store is borrowed. What happens depends on the options, the store's content and the ranks'
  /// own code, on nothing else.
  World(WorldOptions options, Store& store);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Runs `rank_main` once per rank, until all have ended. Once per World.
  RunResult run(const std::function<void(Ports&, GlobalRank)>& rank_main);

  /// Ends a rank as a crash does: from here no call of it reaches the world, then its stack is
  /// unwound. Its peers get PEER_FAILED where they wait for it. From that rank itself it does not
  /// return.
  void kill(GlobalRank rank);
  /// The calling rank does nothing for this long.
  void sleep(std::uint64_t duration_ns);
  /// Virtual time, the same for all ranks.
  Clock& clock();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::sim
