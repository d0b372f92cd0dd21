#include "driver/ranks/rank_process_main.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "core/adapters/mpi/mpi_fabric.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/base/caught.hpp"
#include "driver/lanes/lane.hpp"
#include "driver/lanes/life_faults.hpp"
#include "driver/lanes/rank_liveness.hpp"
#include "driver/lanes/rank_main.hpp"
#include "driver/ranks/rank_guard.hpp"
#include "driver/ranks/rank_hardware.hpp"
#include "driver/ranks/rank_trace.hpp"
#include "driver/yaml/text_file.hpp"
#include "reprise/error.hpp"
#include "sim/mutants/asked.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kDeadlineNs = kCollectiveDeadlineS * 1'000'000'000;
/// In scenarios with delays, all delays and time limits are divided by this factor.
constexpr std::uint64_t kHaste = 10;

bool plays_with_time(const std::vector<sim::FaultState>& faults) {
  return std::any_of(faults.begin(), faults.end(),
                     [](const sim::FaultState& fault) { return fault.spec.delay_ns > 0; });
}

/// Writes a temporary file and renames it, so that a record is either complete or absent.
void write_record(const RankArguments& task, const RankRecord& record) {
  const fs::path file = record_file(task.records, record.result.rank);
  const fs::path beside = file.string() + ".tmp";
  std::ofstream out(beside);
  out << to_json(record);
  out.close();
  if (!out) throw Error(Code::kIo, "the rank's record can't be written", {.file = beside.string()});
  fs::rename(beside, file);
}

/// Writes a record that contains only this error, and ends the process. This way, the driver finds
/// a record even if the rank fails before its life begins.
[[noreturn]] void leave_error(const RankArguments& task, GlobalRank rank, const Error& error) {
  RankRecord record;
  record.result.rank = rank.value;
  record.ending = error.code() == Code::kInternal ? Ending::kDefect : Ending::kFailed;
  record.code = error.code();
  record.message = error.what();
  write_record(task, record);
  std::_Exit(1);
}

/// Guards a rank while MPI starts: if a peer dies during the start, the guard ends this rank, which
/// would otherwise wait forever. Works only if the rank knows its number before MPI starts.
class Entry {
 public:
  Entry(const RankArguments& task, std::optional<GlobalRank> rank) : task_(task) {
    if (!rank) return;
    locks_.emplace(task.records, *rank);
    start_.emplace(start_reason(*locks_, *rank, task.world),
                   [&task, self = *rank](const Error& error) { leave_error(task, self, error); });
  }

  /// Returns the locks of this rank; `rank` is its MPI rank.
  RankLiveness& locks(GlobalRank rank) {
    if (!locks_) locks_.emplace(task_.records, rank);
    return *locks_;
  }
  /// Ends the guard, because MPI has started on this rank. Also marks this rank's start as
  /// complete. Otherwise, ranks that are still starting could mistake a normal end of this rank for
  /// a failed start.
  void through() {
    if (locks_) locks_->come_through();
    start_.reset();
  }

 private:
  const RankArguments& task_;
  std::optional<RankLiveness> locks_;
  std::optional<RankGuard> start_;
};

/// Runs one rank of one launch.
class ProcessRank {
 public:
  ProcessRank(const RankArguments& task, MpiSession& session, Entry& entry)
      : task_(task),
        scenario_(scenario_of(task)),
        past_(parse_past(text_of((fs::path(task.records) / kPastFile).string()), scenario_)),
        faults_(faults_of(scenario_.lives[task.life], past_).specs),
        session_(session),
        locks_(entry.locks(session.rank())),
        haste_(plays_with_time(faults_.states()) ? kHaste : 1),
        mpi_(session_, clock_, {.deadline_ns = kDeadlineNs / haste_, .watch = &locks_}),
        parting_(mpi_.communicator(Group::world(session_.world_size()))),
        hardware_(make_hardware(
            task.lane, {session_, mpi_, clock_, locks_, kDeadlineNs / haste_, task.records})) {
    entry.through();
    guard_.emplace([this] { return why_leave_now(); },
                   [this](const Error& error) { leave(error); });
  }

  int run() {
    sim::Policies policies;
    if (!task_.mutant.empty()) sim::mutant_named(task_.mutant).apply(policies);
    PosixStore store(task_.store);
    ThreadTasks tasks(1);
    NoTrace trace;
    ReferenceRuns references;
    ParsedMetadata parsed;
    const Ports ports{store, mpi_, hardware_->device(), tasks, trace, hardware_->data()};
    if (task_.trace) record_into(ports);
    const LoggedPorts logged(task_.log, {scenario_.name, task_.life, session_.rank()},
                             trace_ ? trace_->ports() : ports, clock_);
    rank_main(
        {.scenario = scenario_,
         .life = task_.life,
         .past = past_,
         .policies = policies,
         .references = references,
         .parsed = parsed,
         .ports = logged.ports(),
         .faults = faults_,
         .powers = {.die = [this] { die(); }, .sleep = [this](std::uint64_t ns) { sleep(ns); }},
         .keep_record = [this] { keep_record(); },
         .log = logged.log(),
         .recorder = trace_ ? &trace_->recorder() : nullptr,
         .processor = hardware_->processor()},
        record_);
    if (trace_) trace_->ended(record_);
    record_.result.gpu = hardware_->gpu();
    leave_record(record_);
    const int code = record_.ending == Ending::kReturned ? 0 : 1;
    if (!part()) std::_Exit(code);
    return code;
  }

 private:
  static Scenario scenario_of(const RankArguments& task) {
    Scenario scenario = read_scenario(task.scenario);
    if (task.life < scenario.lives.size()) return scenario;
    throw Error(Code::kUsage, "the scenario has no life " + std::to_string(task.life));
  }

  /// Makes the trace, which also gets the faults that strike.
  void record_into(const Ports& ports) {
    trace_.emplace(task_, ports);
    faults_.watch([this](const sim::FaultState& struck) {
      trace_->recorder().fault(struck.spec.place.rank, name_of(struck.spec.kind), struck.where);
    });
  }

  /// Returns why this rank must leave, as a call of MPI does not come back. A rank that sleeps by
  /// plan is in no such call.
  std::optional<Error> why_leave_now() {
    if (sleeping_) {
      ended_since_.reset();
      return std::nullopt;
    }
    return why_leave(locks_, session_.rank(), session_.world_size(), ended_since_);
  }

  /// Writes the record that keep_record() made last, with this error, and ends the process. Called
  /// by the guard, while the job's thread waits in MPI. A record that was left stays.
  [[noreturn]] void leave(const Error& error) {
    if (left_) std::_Exit(1);
    RankRecord record = kept_record();
    record.result.rank = session_.rank().value;
    record.ending = Ending::kFailed;
    record.code = error.code();
    record.message = error.what();
    leave_record(std::move(record));
    std::_Exit(1);
  }

  /// Copies the record, so that any thread can write the copy.
  void keep_record() {
    const std::lock_guard lock(mutex_);
    kept_ = record_;
  }

  /// Writes `record` for the driver. Called by a thread that ends the process.
  void leave_record(RankRecord record) {
    const std::lock_guard lock(mutex_);
    record.asked = sim::AskedCount::in_this_process();
    record.faults.clear();
    for (const auto& state : faults_.states()) {
      if (state.spec.place.rank == session_.rank()) record.faults.push_back(state);
    }
    write_record(task_, record);
    left_ = true;
  }

  /// Writes the record and ends the process. Called on the thread in which the fault fires. On a
  /// background thread, this writes the copy that keep_record() made last, because the job's thread
  /// may be changing the record itself.
  void die() {
    if (trace_) trace_->died();
    const bool on_own_thread = std::this_thread::get_id() == thread_;
    RankRecord record = on_own_thread ? record_ : kept_record();
    record.result.rank = session_.rank().value;
    record.ending = Ending::kLost;
    record.code = Code::kPeerFailed;
    record.message = "it was killed";
    leave_record(std::move(record));
    ::kill(::getpid(), SIGKILL);
    ::pause();
  }

  RankRecord kept_record() {
    const std::lock_guard lock(mutex_);
    return kept_;
  }

  void sleep(std::uint64_t ns) {
    sleeping_ = true;
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns / haste_));
    sleeping_ = false;
  }

  /// Makes all ranks leave MPI together. Returns false if they can't, for example because a rank
  /// never reaches this call. If this rank has failed, it releases its lock first, so that no other
  /// rank waits for it.
  bool part() {
    const bool well = record_.ending == Ending::kReturned;
    if (!well) locks_.let_go();
    if (session_.abandoned()) return false;
    try {
      const bool closed = hardware_->close(all_are(well && !hardware_->abandoned()));
      parting_->barrier();
      return closed;
    } catch (const std::exception&) {
      return false;
    }
  }

  /// True if every rank passes true. Ranks must agree on this before they close MPI together.
  /// Otherwise, a rank that is well could wait for a rank that never closes MPI.
  bool all_are(bool well) {
    const std::vector<std::int64_t> own = {well ? 1 : 0};
    return parting_->all_reduce(Reduce::kMin, own)[0] == 1;
  }

  const RankArguments& task_;
  Scenario scenario_;
  Past past_;
  sim::FaultBook faults_;
  MpiSession& session_;
  PosixClock clock_;
  RankLiveness& locks_;
  std::uint64_t haste_;
  MpiFabric mpi_;
  std::shared_ptr<Communicator> parting_;
  std::unique_ptr<RankHardware> hardware_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::optional<RankTrace> trace_;  ///< empty if there is none
  RankRecord record_;
  std::mutex mutex_;  ///< guards the record's file and kept_
  RankRecord kept_;
  std::atomic<bool> left_ = false;                                    ///< the record was written
  std::atomic<bool> sleeping_ = false;                                ///< by plan
  std::optional<std::chrono::steady_clock::time_point> ended_since_;  ///< used by the guard alone
  std::optional<RankGuard> guard_;  ///< ends before all that it uses
};

}  // namespace

int rank_process_main(const RankArguments& task, std::optional<GlobalRank> rank) {
  Entry entry(task, rank);
  MpiSession session;
  try {
    if (rank && *rank != session.rank()) {
      throw Error(Code::kUnsupported, "the launcher and MPI number the ranks differently",
                  {.rank = session.rank()});
    }
    return ProcessRank(task, session, entry).run();
  } catch (const std::exception& caught) {
    leave_error(task, session.rank(), error_from(caught));
  }
}

}  // namespace reprise::driver
