// Implements the driver's side of the lanes with real processes: launches the ranks of each
// life, judges them by their records, and leaves no process behind.
#include "driver/lanes/process_lane.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "core/adapters/posix/posix_store.hpp"
#include "core/base/codes.hpp"
#include "driver/lanes/lane.hpp"
#include "driver/lanes/process_table.hpp"
#include "driver/lanes/rank_arguments.hpp"
#include "driver/lanes/rank_liveness.hpp"
#include "driver/lanes/reprise_ranks.hpp"
#include "driver/lanes/scratch_directory.hpp"
#include "driver/lanes/sim_lane.hpp"
#include "driver/lanes/trace_part.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/yaml/text_file.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScenarioFile = "scenario.yaml";
constexpr auto kLanePoll = std::chrono::milliseconds(10);
constexpr int kLooks = 100;
constexpr auto kGraceTold = std::chrono::seconds(15);
// If ranks ended without a record, the verdict is a failure anyway, so this grace period is short.
constexpr auto kGraceLost = std::chrono::seconds(2);

/// Returns the launcher's command line. By default, a launcher kills all ranks when one dies. The
/// options keep the other ranks alive, so that they can record how they noticed the death. mpirun
/// puts its own files into `directory`. By default, all mpiruns of a user share one directory: the
/// first mpirun that ends removes it and breaks any mpirun that is just starting.
std::vector<std::string> launch_words(const std::string& launcher, const fs::path& directory) {
  if (launcher == "srun") return {launcher, "--kill-on-bad-exit=0", "--wait=0"};
  std::vector<std::string> words = {launcher, "--oversubscribe", "--enable-recovery"};
  words.insert(words.end(), {"--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"});
  words.insert(words.end(), {"--mca", "orte_tmpdir_base", directory.string()});
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  return words;
}

std::int32_t records_in(const std::string& directory, std::int32_t world) {
  std::int32_t found = 0;
  for (std::int32_t rank = 0; rank < world; ++rank) {
    if (fs::exists(record_file(directory, rank))) ++found;
  }
  return found;
}

/// Returns how long the launcher may still run; nothing if there is no limit yet. The limit is
/// needed because mpirun may never end if a rank died during the start. The limit applies once
/// every rank has written its record, or once all ranks that took their locks have ended. It is
/// longer in the first case, because ranks may still have something to close.
std::optional<std::chrono::seconds> grace_of(RankLiveness& locks, const std::string& records,
                                             std::int32_t world) {
  if (records_in(records, world) == world) return kGraceTold;
  bool begun = false;
  for (GlobalRank rank{0}; rank.value < world; ++rank.value) {
    if (!locks.has_begun(rank)) continue;
    if (!locks.has_ended(rank)) return std::nullopt;
    begun = true;
  }
  return begun ? std::optional(kGraceLost) : std::nullopt;
}

/// Kills every process that outlived the launcher, ranks and helper processes of the launcher, and
/// all that these started; waits until they are gone. Returns their ids.
std::vector<std::int64_t> end_all(const std::string& records) {
  std::vector<std::int64_t> found;
  std::set<pid_t> groups;
  const auto is_gone = [](pid_t group) { return members_of(group).empty(); };
  for (int look = 0; look < kLooks; ++look) {
    const auto living = started_with(records);
    if (living.empty() && std::all_of(groups.begin(), groups.end(), is_gone)) break;
    if (look == 0) found = living;
    for (const auto process : living) {
      const auto id = static_cast<pid_t>(process);
      const pid_t group = ::getpgid(id);
      if (group > 0 && group != ::getpgrp() && ::kill(-group, SIGKILL) == 0) groups.insert(group);
      ::kill(id, SIGKILL);
    }
    std::this_thread::sleep_for(kLanePoll);
  }
  return found;
}

std::uint64_t since_1970_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace

Findings findings_on(const std::string& launcher, const ProcessEnd& end,
                     const std::vector<RankRecord>& ranks, const std::vector<std::int64_t>& left) {
  Findings findings;
  for (const auto process : left) {
    findings.push_back({.code = passed_on::kHang,
                        .text = launcher + " left the process " + std::to_string(process) +
                                " behind, which was killed"});
  }
  if (end.left_some) {
    findings.push_back(
        {.code = passed_on::kHang, .text = launcher + " left processes behind, which were killed"});
  }
  const bool returned = std::all_of(ranks.begin(), ranks.end(), [](const RankRecord& rank) {
    return rank.ending == Ending::kReturned;
  });
  if (!returned) return findings;
  if (end.timed_out) {
    findings.push_back({.code = passed_on::kHang,
                        .text = "every rank reports success, but " + launcher +
                                " was still running at the deadline, and was killed"});
  } else if (end.cut_short) {
    findings.push_back({.code = passed_on::kHang,
                        .text = "every rank reports success, but " + launcher +
                                " was still running long after, and was killed"});
  } else if (end.exit_code != 0) {
    findings.push_back({.code = Code::kInternal,
                        .text = "every rank reports success, but " + launcher + " ended with " +
                                std::to_string(end.exit_code) + ": one failed after that"});
  }
  return findings;
}

namespace {

class ProcessLane final : public Lane {
 public:
  ProcessLane(LaneKind lane, const Scenario& scenario, const LaneOptions& options)
      : lane_(lane), scenario_(scenario), options_(options), work_(scratch_.path()) {
    store_ = options.keep.empty() ? work_ / "store" : fs::path(options.keep) / scenario.name;
    fs::create_directories(store_);
    // If the scenario is a row of a table, the file contains only that row.
    std::ofstream(work_ / kScenarioFile) << to_yaml(scenario);
    store_ports_ = std::make_unique<PosixStore>(store_.string());
  }

  LifeRecord run(std::size_t life, const Past& past) override {
    const LifePlan& plan = scenario_.lives[life];
    const std::int32_t world = plan.world_size();
    const fs::path records = work_ / ("records" + std::to_string(life));
    const fs::path log = work_ / ("log" + std::to_string(life));
    fs::create_directories(records);
    std::ofstream(records / kPastFile) << to_json(past);
    LifeRecord record;
    record.layout = sim::to_string(modules_of(scenario_, life));
    RankLiveness locks(records.string());
    const ProcessEnd end = run_process(command(life, world, records), log,
                                       {.deadline_s = options_.deadline_s, .grace = [&] {
                                          return grace_of(locks, records.string(), world);
                                        }});
    const auto left = end_all(records.string());
    for (std::int32_t rank = 0; rank < world; ++rank) {
      record.ranks.push_back(collect(records.string(), rank, end));
      record.asked += record.ranks.back().asked;
    }
    record.findings = findings_on(options_.launcher, end, record.ranks, left);
    if (records_in(records.string(), world) == 0 && !end.timed_out) {
      record.launch_error = options_.launcher + " ended with " + std::to_string(end.exit_code) +
                            " but no rank left a record: " + tail_of(log);
    }
    if (options_.recorded) {
      options_.recorded(life, merged_parts(records.string(), record.ranks, since_1970_ns()));
    }
    keep_members(plan, record);
    return record;
  }

  Store& store() override { return *store_ports_; }
  std::string directory() const override { return store_.string(); }
  void finish() override {}

 private:
  std::vector<std::string> command(std::size_t life, std::int32_t ranks,
                                   const fs::path& records) const {
    std::vector<std::string> words = launch_words(options_.launcher, work_);
    words.insert(words.end(),
                 {"-n", std::to_string(ranks), ranks_program(options_.executable), "rank"});
    words.insert(words.end(), {"--lane", std::string(name_of(lane_))});
    words.insert(words.end(), {"--ranks", std::to_string(ranks)});
    words.insert(words.end(), {"--scenario", (work_ / kScenarioFile).string()});
    words.insert(words.end(), {"--life", std::to_string(life)});
    words.insert(words.end(), {"--store", store_.string(), "--records", records.string()});
    if (!options_.mutant.empty()) words.insert(words.end(), {"--mutant", options_.mutant});
    if (options_.log.on()) {
      words.insert(words.end(), {"--log", options_.log.level, "--logs", options_.log.directory});
    }
    if (options_.recorded) words.emplace_back("--trace");
    return words;
  }

  static RankRecord collect(const std::string& records, std::int32_t rank, const ProcessEnd& end) {
    const fs::path file = record_file(records, rank);
    RankRecord record;
    record.result.rank = rank;
    try {
      if (fs::exists(file)) return parse_record(text_of(file), file.string());
    } catch (const Error& error) {
      record.code = error.code();
      record.message = error.what();
      return record;
    }
    record.ending = end.timed_out ? Ending::kHung : Ending::kLost;
    record.code = end.timed_out ? Code::kDeadline : Code::kPeerFailed;
    record.message = end.timed_out ? "the rank was still running at the deadline, and was killed"
                                   : "the rank's process ended without leaving a record";
    return record;
  }

  LaneKind lane_;
  const Scenario& scenario_;
  LaneOptions options_;
  ScratchDirectory scratch_;
  fs::path work_;
  fs::path store_;
  std::unique_ptr<PosixStore> store_ports_;
};

}  // namespace

std::unique_ptr<Lane> make_process_lane(LaneKind lane, const Scenario& scenario,
                                        const LaneOptions& options) {
  return std::make_unique<ProcessLane>(lane, scenario, options);
}

}  // namespace reprise::driver
