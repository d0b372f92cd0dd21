#include "sim/world/world.hpp"

#include <exception>
#include <map>
#include <utility>

#include "core/base/check.hpp"
#include "sim/fibers/event_log.hpp"
#include "sim/fibers/scheduler.hpp"
#include "sim/fibers/sim_clock.hpp"
#include "sim/world/rank_context.hpp"
#include "sim/world/rank_store.hpp"
#include "sim/world/sim_device.hpp"
#include "sim/world/sim_fabric.hpp"
#include "sim/world/sim_network.hpp"
#include "sim/world/sim_tasks.hpp"

namespace reprise::sim {
namespace {

/// Records the trace events of a rank.
class SimTrace final : public Trace {
 public:
  explicit SimTrace(RankContext& life) : life_(life) {}

  void event(const TraceEvent& event) override {
    life_.note(event.phase, event.detail,
               {event.bytes, event.items, static_cast<std::uint64_t>(event.moment)});
    if (life_.recorder() != nullptr) life_.recorder()->phase(life_.rank(), event);
    records_.push_back({.phase = std::string(event.phase),
                        .detail = event.detail,
                        .bytes = event.bytes,
                        .items = event.items,
                        .moment = event.moment,
                        .at_ns = life_.scheduler().now_ns()});
  }
  const std::vector<TraceRecord>& records() const { return records_; }

 private:
  RankContext& life_;
  std::vector<TraceRecord> records_;
};

std::string device_of(const WorldOptions& options, GlobalRank rank) {
  if (options.devices.empty()) return "node0:" + std::to_string(rank.value);
  return options.devices.at(static_cast<std::size_t>(rank.value));
}

// The parts of a world that its ranks share.
struct Shared {
  Shared(const WorldOptions& options, Store& shared_store)
      : scheduler(Stream(options.seed).split("schedule"), options.switches_max, options.schedule),
        log(options.world_size, options.calls),
        network(scheduler, options.deadline_ns, options.rates.fabric),
        store(shared_store),
        store_resources(options.rates),
        bus(options.rates.bus) {}

  Bus& bus_of(const std::string& device) { return buses.try_emplace(device, bus).first->second; }

  Scheduler scheduler;
  EventLog log;
  SimNetwork network;
  Store& store;
  StoreResources store_resources;
  Rate bus;
  std::map<std::string, Bus> buses;  ///< by name of the device
};

// The ports of one rank, and how the rank ended.
struct RankSeat {
  RankSeat(Shared& shared, const WorldOptions& options, GlobalRank rank)
      : life(shared.scheduler, shared.log, rank, options.recorder),
        store(life, shared.store, shared.store_resources),
        fabric(life, shared.network, options.world_size),
        device(life, device_of(options, rank), shared.bus_of(device_of(options, rank))),
        between_devices(life, shared.network, options.world_size, &device),
        tasks(life, options.background),
        trace(life),
        ports{store, fabric, device,
              tasks, trace,  options.device_fabric ? &between_devices : nullptr} {}

  RankContext life;
  RankStore store;
  SimFabric fabric;
  SimDevice device;
  SimFabric between_devices;
  SimTasks tasks;
  SimTrace trace;
  Ports ports;
  RankOutcome outcome;
};

RankOutcome outcome_of(const FiberEnd& end) {
  if (end.killed) return {.end = RankEnd::kKilled};
  if (!end.failure) return {.end = RankEnd::kReturned};
  try {
    std::rethrow_exception(end.failure);
  } catch (const Error& error) {
    return {.end = RankEnd::kFailed, .error = error};
  } catch (const std::exception& defect) {
    return {.end = RankEnd::kDefect, .message = defect.what()};
  }
}

}  // namespace

std::string_view name_of(RankEnd end) {
  switch (end) {
    case RankEnd::kReturned:
      return "returned";
    case RankEnd::kFailed:
      return "failed";
    case RankEnd::kDefect:
      return "defect";
    case RankEnd::kKilled:
      return "killed";
    case RankEnd::kHung:
      return "hung";
  }
  return "unknown";
}

struct World::State {
  State(WorldOptions chosen, Store& shared_store)
      : options(std::move(chosen)), shared(options, shared_store) {
    CHECK(options.devices.empty() ||
              options.devices.size() == static_cast<std::size_t>(options.world_size),
          options.devices.size(), options.world_size);
    if (options.recorder != nullptr) attach(*options.recorder);
    for (std::int32_t rank = 0; rank < options.world_size; ++rank) {
      seats.push_back(std::make_unique<RankSeat>(shared, options, GlobalRank{rank}));
    }
  }

  void attach(Recorder& recorder) const {
    const Scheduler& scheduler = shared.scheduler;
    recorder.attach({.now_ns = [&scheduler] { return scheduler.now_ns(); },
                     .running = [&scheduler] { return scheduler.running(); },
                     .is_dead = [&scheduler](GlobalRank rank) { return scheduler.is_dead(rank); }});
  }

  void ended(RankSeat& seat, const FiberEnd& end) {
    seat.outcome = outcome_of(end);
    const GlobalRank rank = seat.life.rank();
    if (seat.outcome.end == RankEnd::kFailed) {
      shared.network.gone(rank, *seat.outcome.error);
    } else if (seat.outcome.end == RankEnd::kDefect) {
      shared.network.gone(rank, Error(Code::kPeerFailed, seat.outcome.message));
    }
    if (options.recorder != nullptr) record_end(seat);
  }

  void record_end(const RankSeat& seat) {
    const RankOutcome& outcome = seat.outcome;
    const GlobalRank rank = seat.life.rank();
    if (killed.contains(rank)) return;
    if (outcome.end == RankEnd::kReturned) return options.recorder->returned(rank);
    const bool hung = outcome.end == RankEnd::kKilled;
    const auto& error = hung ? shared.scheduler.verdict() : outcome.error;
    options.recorder->ended(rank, name_of(hung ? RankEnd::kHung : outcome.end),
                            error ? error->what() : outcome.message);
  }

  RunResult result() {
    RunResult result;
    for (const auto& seat : seats) {
      auto& outcome = seat->outcome;
      outcome.event_hash = shared.log.digest(seat->life.rank());
      outcome.trace = seat->trace.records();
      if (outcome.end == RankEnd::kKilled && !killed.contains(seat->life.rank())) {
        outcome.end = RankEnd::kHung;
        outcome.error = shared.scheduler.verdict();
      }
      result.ranks.push_back(outcome);
    }
    result.event_hash = shared.log.digest();
    result.events = shared.log.count();
    result.decisions = shared.scheduler.decisions();
    result.fibers = shared.scheduler.fibers();
    result.duration_ns = shared.scheduler.now_ns();
    result.deadlock = shared.scheduler.verdict();
    return result;
  }

  WorldOptions options;
  Shared shared;
  SimClock clock{shared.scheduler};
  std::vector<std::unique_ptr<RankSeat>> seats;
  std::set<GlobalRank> killed;
};

World::World(WorldOptions options, Store& store)
    : state_(std::make_unique<State>(std::move(options), store)) {}

World::~World() = default;

RunResult World::run(const std::function<void(Ports&, GlobalRank)>& rank_main) {
  for (const auto& seat : state_->seats) {
    state_->shared.scheduler.spawn(
        seat->life.rank(), [&rank_main, &seat] { rank_main(seat->ports, seat->life.rank()); },
        [this, &seat](const FiberEnd& end) { state_->ended(*seat, end); });
  }
  state_->shared.scheduler.run();
  if (state_->options.recorder != nullptr) state_->options.recorder->finish();
  return state_->result();
}

void World::kill(GlobalRank rank) {
  if (!state_->killed.insert(rank).second) return;
  if (state_->options.recorder != nullptr) state_->options.recorder->died(rank);
  state_->shared.network.gone(rank, Error(Code::kPeerFailed, "it died", {.rank = rank}));
  state_->shared.scheduler.kill(rank);
}

void World::sleep(std::uint64_t duration_ns) {
  state_->shared.scheduler.sleep_until(state_->shared.scheduler.now_ns() + duration_ns);
}

void World::compute_checksum(std::uint64_t bytes) {
  Resource thread(state_->options.rates.checksums);
  const std::uint64_t now = state_->shared.scheduler.now_ns();
  state_->shared.scheduler.sleep_until(thread.take(now, bytes).end_ns);
}

Clock& World::clock() { return state_->clock; }

}  // namespace reprise::sim
