#include "scenarios/driver/mpi_lane.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/adapters/mpi/mpi_fabric.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/base/error.hpp"
#include "scenarios/driver/lane.hpp"
#include "scenarios/driver/life_faults.hpp"
#include "scenarios/driver/process.hpp"
#include "scenarios/driver/rank_program.hpp"
#include "scenarios/driver/scratch_directory.hpp"
#include "scenarios/driver/text_file.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNanoseconds = 1'000'000'000;
constexpr std::size_t kLogShown = 400;
constexpr const char* kScenarioFile = "scenario.yaml";
constexpr const char* kPastFile = "past.json";  // beside the records of the life that it is for

struct SilentTrace final : Trace {
  void event(const TraceEvent&) override {}
};

std::string record_name(std::int32_t rank) { return "rank" + std::to_string(rank) + ".json"; }

std::string tail_of(const fs::path& file) {
  const std::string text = text_of(file);
  return text.size() <= kLogShown ? text : "..." + text.substr(text.size() - kLogShown);
}

class MpiLane final : public Lane {
 public:
  MpiLane(const Scenario& scenario, const LaneOptions& options)
      : scenario_(scenario), options_(options), work_(scratch_.path()) {
    store_ = options.keep.empty() ? work_ / "store" : fs::path(options.keep) / scenario.name;
    fs::create_directories(store_);
    std::ofstream(work_ / kScenarioFile) << to_yaml(scenario);  // one row, where it is of a table
    store_ports_ = std::make_unique<PosixStore>(store_.string());
  }

  IncarnationRecord run(std::size_t incarnation, const Past& past) override {
    const IncarnationPlan& plan = scenario_.incarnations[incarnation];
    const std::int32_t world = plan.world_size();
    const fs::path records = work_ / ("records" + std::to_string(incarnation));
    const fs::path log = work_ / ("log" + std::to_string(incarnation));
    fs::create_directories(records);
    std::ofstream(records / kPastFile) << to_json(past);
    IncarnationRecord record;
    record.layout = to_string(plan.layout);
    const ProcessEnd end =
        run_process(command(incarnation, world, records), log, options_.deadline_s);
    for (std::int32_t rank = 0; rank < world; ++rank) {
      record.ranks.push_back(collect(records, rank, end));
    }
    const bool none = std::none_of(record.ranks.begin(), record.ranks.end(), [](const auto& one) {
      return one.ending != Ending::kLost && one.ending != Ending::kHung;
    });
    if (none && !end.timed_out) {
      record.launch_error = options_.launcher + " ended with " + std::to_string(end.exit_code) +
                            " and no rank left a record: " + tail_of(log);
    }
    keep_members(plan, record);
    return record;
  }

  Store& store() override { return *store_ports_; }
  void finish() override {}

 private:
  std::vector<std::string> command(std::size_t incarnation, std::int32_t ranks,
                                   const fs::path& records) const {
    std::vector<std::string> words = {options_.launcher};
    if (options_.launcher == "mpirun") {
      words.insert(words.end(), {"--oversubscribe", "--enable-recovery"});
      if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
    }
    words.insert(words.end(), {"-n", std::to_string(ranks), options_.executable, "rank"});
    words.insert(words.end(), {"--scenario", (work_ / kScenarioFile).string()});
    words.insert(words.end(), {"--incarnation", std::to_string(incarnation)});
    words.insert(words.end(), {"--store", store_.string(), "--records", records.string()});
    if (!options_.mutant.empty()) words.insert(words.end(), {"--mutant", options_.mutant});
    return words;
  }

  static RankRecord collect(const fs::path& records, std::int32_t rank, const ProcessEnd& end) {
    const fs::path file = records / record_name(rank);
    RankRecord record;
    try {
      if (fs::exists(file)) return parse_record(text_of(file), file.string());
    } catch (const Error& error) {
      record.code = std::string(name_of(error.code()));
      record.message = error.what();
      return record;
    }
    record.result.rank = rank;
    record.ending = end.timed_out ? Ending::kHung : Ending::kLost;
    record.code = std::string(name_of(end.timed_out ? Code::kDeadline : Code::kPeerFailed));
    record.message = end.timed_out ? "the rank was still running at the deadline"
                                   : "the rank's process ended without a record";
    return record;
  }

  const Scenario& scenario_;
  LaneOptions options_;
  ScratchDirectory scratch_;
  fs::path work_;
  fs::path store_;
  std::unique_ptr<PosixStore> store_ports_;
};

/// Beside its place and renamed: a record is there whole or not at all.
void write_record(const RankTask& task, const RankRecord& record) {
  const fs::path file = fs::path(task.records) / record_name(record.result.rank);
  const fs::path beside = file.string() + ".tmp";
  std::ofstream out(beside);
  out << to_json(record);
  out.close();
  if (!out) throw Error(Code::kIo, "the rank's record can't be written", {.file = beside.string()});
  fs::rename(beside, file);
}

}  // namespace

std::unique_ptr<Lane> make_mpi_lane(const Scenario& scenario, const LaneOptions& options) {
  return std::make_unique<MpiLane>(scenario, options);
}

int run_mpi_rank(const RankTask& task) {
  MpiSession session;
  const Scenario scenario = read_scenario(task.scenario);
  if (task.incarnation >= scenario.incarnations.size()) {
    throw Error(Code::kUsage,
                "the scenario has no incarnation " + std::to_string(task.incarnation));
  }
  sim::Policies policies;
  if (!task.mutant.empty()) sim::mutant_named(task.mutant).apply(policies);
  PosixStore store(task.store);
  PosixClock clock;
  MpiFabric fabric(session, clock, {.deadline_ns = task.deadline_s * kNanoseconds});
  HostDevice device(session.node(), session.rank().value);
  ThreadTasks tasks(1);
  SilentTrace trace;
  TwinBook twins;
  const std::string past_file = (fs::path(task.records) / kPastFile).string();
  const Past past = parse_past(text_of(past_file), scenario);
  sim::FaultBook faults(faults_of(scenario.incarnations[task.incarnation], past).specs);
  RankRecord record;
  run_rank({.scenario = scenario,
            .incarnation = task.incarnation,
            .past = past,
            .policies = policies,
            .twins = twins,
            .ports = {store, fabric, device, clock, tasks, trace},
            .faults = faults,
            .powers = {.die = [] { std::_Exit(1); },
                       .sleep =
                           [](std::uint64_t ns) {
                             std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
                           }}},
           record);
  for (const auto& state : faults.states()) {
    if (state.spec.place.rank == session.rank()) record.faults.push_back(state);
  }
  write_record(task, record);
  if (session.abandoned()) std::_Exit(1);
  return record.ending == Ending::kReturned ? 0 : 1;
}

}  // namespace reprise::driver
