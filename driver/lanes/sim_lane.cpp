#include "driver/lanes/sim_lane.hpp"

#include <algorithm>
#include <utility>

#include "core/adapters/posix/posix_store.hpp"
#include "core/base/codes.hpp"
#include "core/base/hash.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "driver/lanes/life_faults.hpp"
#include "driver/lanes/rank_main.hpp"
#include "driver/record/job_config.hpp"
#include "properties/unsettled.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/world/copy_tree.hpp"
#include "sim/world/sim_device.hpp"
#include "sim/world/sim_store.hpp"

namespace reprise::driver {
namespace {

// Until a copy has settled, its target contains a pattern that the device wrote there. The judges
// look for the same pattern.
static_assert(sim::SimDevice::kUngathered == kUnsettled);
static_assert(sim::SimDevice::kUnscattered == kUnsettledLoad);

constexpr std::uint64_t kNanoseconds = 1'000'000'000;

std::vector<std::string> devices_of(const Scenario& scenario, std::size_t life) {
  std::vector<std::string> devices;
  for (std::int32_t rank = 0; rank < scenario.lives[life].world_size(); ++rank) {
    devices.push_back(device_of(scenario, life, GlobalRank{rank}));
  }
  return devices;
}

Ending ending_of(sim::RankEnd end) {
  switch (end) {
    case sim::RankEnd::kReturned:
      return Ending::kReturned;
    case sim::RankEnd::kFailed:
      return Ending::kFailed;
    case sim::RankEnd::kDefect:
      return Ending::kDefect;
    case sim::RankEnd::kHung:
      return Ending::kHung;
    case sim::RankEnd::kKilled:
      return Ending::kLost;
  }
  return Ending::kLost;
}

/// Writes into a rank's record how the rank ended in the simulated world, unless the rank has
/// recorded its own error.
void take_end(const sim::RankOutcome& outcome, RankRecord& record) {
  if (outcome.end == sim::RankEnd::kReturned) return;
  const bool told = record.ending == Ending::kFailed || record.ending == Ending::kDefect;
  if (told && outcome.end == sim::RankEnd::kFailed) return;
  record.ending = ending_of(outcome.end);
  if (outcome.end == sim::RankEnd::kHung) {
    record.code = passed_on::kHang;
    record.message = outcome.error ? outcome.error->message() : "it never ended";
  } else if (outcome.error) {
    record.code = outcome.error->code();
    record.message = outcome.error->what();
  } else {
    const bool killed = outcome.end == sim::RankEnd::kKilled;
    record.code = killed ? Code::kPeerFailed : Code::kInternal;
    record.message = killed ? "it was killed" : outcome.message;
  }
}

/// Adds the faults to the records of the ranks for which they were planned.
void take_faults(const sim::FaultBook& book, LifeRecord& record) {
  for (const auto& state : book.states()) {
    const auto rank = static_cast<std::size_t>(state.spec.place.rank.value);
    if (rank < record.ranks.size()) record.ranks[rank].faults.push_back(state);
  }
}

/// Makes the recorder of a life, which also gets the faults that strike.
sim::Recorder& record_into(std::optional<sim::Recorder>& recorder, sim::FaultBook& faults) {
  recorder.emplace();
  faults.watch([&recorder](const sim::FaultState& struck) {
    recorder->fault(struck.spec.place.rank, name_of(struck.spec.kind), struck.where);
  });
  return *recorder;
}

/// Writers of other jobs, as which faults pose.
class OtherWriters {
 public:
  explicit OtherWriters(sim::SimStore& store) : store_(store) {}

  void take_lease(const std::string& path) {
    store_.pass_term();
    locks_.push_back(store_.lock(path));
  }
  /// Takes the leases of a save of iteration `path`, and writes what such a save has written
  /// shortly before its commit.
  void begin(const std::string& path) {
    const std::string tracker = join_path(parent_path(path), std::string(kTrackerFile));
    take_lease(tracker);
    locks_.push_back(store_.lock(path));
    const std::string token = locks_.back()->token();
    const std::string saving = aside_path(path, kSavingSuffix, token);
    store_.make_directory(saving);
    write(join_path(saving, mark_of(token)), "");
    write(join_path(saving, "__0_0.distcp"), "payload");
    write(aside_path(tracker, kNextSuffix, token), "2");
  }
  /// Rules that the job's own writers left what these writers wrote.
  void judge(LifeRecord& record) {
    for (const std::string& file : written_) {
      if (store_.stat(file)) continue;
      record.findings.push_back({.code = judged::kProtocol,
                                 .text = "the job removed something that another writer, which has "
                                         "taken over its lease, is writing: " +
                                         file,
                                 .phase = "store"});
    }
  }

 private:
  void write(const std::string& path, std::string_view text) {
    write_durably(store_, path, as_bytes(text));
    written_.push_back(path);
  }

  sim::SimStore& store_;
  std::vector<std::unique_ptr<StoreLock>> locks_;
  std::vector<std::string> written_;
};

class SimLane final : public Lane {
 public:
  SimLane(const Scenario& scenario, const LaneOptions& options, MemoryOf memory)
      : scenario_(scenario),
        options_(options),
        memory_(std::move(memory)),
        policies_(policies_of(options)),
        store_("sim:", scenario.checkpoint.store, options.seed) {}

  LifeRecord run(std::size_t life, const Past& past) override {
    const LifePlan& plan = scenario_.lives[life];
    sim::WorldOptions world;
    world.seed = mix64(options_.seed, life);
    world.world_size = plan.world_size();
    world.deadline_ns = kCollectiveDeadlineS * kNanoseconds;
    world.devices = devices_of(scenario_, life);
    if (options_.schedule) world.schedule = options_.schedule(life);
    if (scenario_.checkpoint.late) world.background = sim::Background::kLate;
    sim::FaultBook faults(faults_of(plan, past).specs);
    std::optional<sim::Recorder> recorder;
    if (options_.recorded) world.recorder = &record_into(recorder, faults);
    if (options_.calls) {
      world.calls = [&](const sim::LoggedEvent& call) { options_.calls(life, call); };
    }
    const std::uint64_t asked_before = sim::AskedCount::on_this_thread();
    if (options_.asked_seams) sim::take_asked_seams();  // forgets those of earlier runs
    OtherWriters others(store_);
    LifeRecord record = run_in_world(world, store_, [&](const RankSeat& seat, RankRecord& own) {
      const RankMemory memory = memory_(seat);
      const Ports& given = seat.ports;
      const Ports ports{given.store, given.fabric, memory.device, given.tasks, given.trace};
      sim::FaultPowers powers = seat.powers;
      if (!store_.capabilities().renames) {
        powers.take_lease = [&others](const std::string& path) { others.take_lease(path); };
        powers.let_other_write = [&others](const std::string& path) { others.begin(path); };
      }
      const LoggedPorts logged(options_.log, {scenario_.name, life, seat.rank}, ports, seat.clock);
      return rank_main({.scenario = scenario_,
                        .life = life,
                        .past = past,
                        .policies = policies_,
                        .references = *options_.references,
                        .parsed = *options_.parsed,
                        .ports = logged.ports(),
                        .faults = faults,
                        .powers = powers,
                        .log = logged.log(),
                        .recorder = world.recorder,
                        .processor = memory.processor},
                       own);
    });
    if (recorder) options_.recorded(life, recorder->take());
    record.asked = sim::AskedCount::on_this_thread() - asked_before;
    if (options_.asked_seams) *options_.asked_seams |= sim::take_asked_seams();
    record.layout = sim::to_string(modules_of(scenario_, life));
    take_faults(faults, record);
    keep_members(plan, record);
    others.judge(record);
    // Lets all leases expire and makes the store's listings show all changes before the next
    // life begins.
    store_.pass_term();
    store_.show_current_names();
    const auto before = is_power_cut_planned(scenario_) ? store_.digest() : 0;
    crash(life);
    record.power_cut_took = is_power_cut_planned(scenario_) && store_.digest() != before;
    return record;
  }

  Store& store() override { return store_; }

  void finish() override {
    if (options_.keep.empty()) return;
    PosixStore kept(options_.keep);
    sim::copy_tree({store_}, {kept, scenario_.name});
  }

 private:
  /// Ends the life's hold on the store. By default this is the hardest end: all unsynced
  /// changes are lost.
  void crash(std::size_t life) {
    switch (scenario_.checkpoint.crash.value_or(CrashModel::kPowerCut)) {
      case CrashModel::kPowerCut:
        return store_.crash();
      case CrashModel::kKilled:
        return;
      case CrashModel::kAnySubset:
        return store_.crash_keeping_some(mix64(mix64(options_.seed, scenario_.seed), life));
    }
  }

  const Scenario& scenario_;
  LaneOptions options_;
  MemoryOf memory_;
  sim::Policies policies_;
  sim::SimStore store_;
};

}  // namespace

LifeRecord run_in_world(
    const sim::WorldOptions& options, Store& store,
    const std::function<std::optional<Error>(const RankSeat& seat, RankRecord& record)>& program) {
  LifeRecord record;
  record.ranks.resize(static_cast<std::size_t>(options.world_size));
  for (std::int32_t rank = 0; rank < options.world_size; ++rank) {
    record.ranks[static_cast<std::size_t>(rank)].result.rank = rank;
  }
  sim::World world(options, store);
  const sim::RunResult result = world.run([&](Ports& ports, GlobalRank rank) {
    const RankSeat seat{ports,
                        world.clock(),
                        rank,
                        {.die = [&world, rank] { world.kill(rank); },
                         .sleep = [&world](std::uint64_t ns) { world.sleep(ns); }}};
    const auto ended = program(seat, record.ranks[static_cast<std::size_t>(rank.value)]);
    if (ended) throw Error(*ended);
  });
  for (std::size_t r = 0; r < record.ranks.size(); ++r) {
    take_end(result.ranks[r], record.ranks[r]);
  }
  record.event_hash = hex(result.event_hash);
  record.decisions = result.decisions;
  record.fibers = result.fibers;
  return record;
}

RankMemory host_memory(const RankSeat& seat) { return {sim::host_processor(), seat.ports.device}; }

std::unique_ptr<Lane> make_sim_lane(const Scenario& scenario, const LaneOptions& options) {
  return make_sim_lane(scenario, options, host_memory);
}
std::unique_ptr<Lane> make_sim_lane(const Scenario& scenario, const LaneOptions& options,
                                    MemoryOf memory) {
  return std::make_unique<SimLane>(scenario, options, std::move(memory));
}

}  // namespace reprise::driver
