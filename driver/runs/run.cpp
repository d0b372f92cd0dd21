#include "driver/runs/run.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "core/adapters/posix/posix_store.hpp"
#include "core/base/check.hpp"
#include "core/base/print.hpp"
#include "core/base/sha256.hpp"
#include "core/base/shell_word.hpp"
#include "core/checkpoint/generations.hpp"
#include "core/checkpoint/stored_tracker.hpp"
#include "core/ports/whole_file.hpp"
#include "driver/judges/content_judge.hpp"
#include "driver/judges/store_judge.hpp"
#include "driver/judges/verdict.hpp"
#include "driver/lanes/foreign_life.hpp"
#include "driver/lanes/gpu_room.hpp"
#include "driver/lanes/reprise_ranks.hpp"
#include "driver/programs/control_book.hpp"
#include "driver/programs/program_run.hpp"
#include "driver/record/between_lives.hpp"
#include "driver/record/build_info.hpp"
#include "driver/record/past.hpp"
#include "driver/runs/failure_timelines.hpp"
#include "driver/runs/machine.hpp"
#include "driver/runs/mutant_effect.hpp"
#include "driver/runs/run_jobs.hpp"
#include "driver/runs/run_plan.hpp"
#include "driver/trace/event_line.hpp"
#include "driver/trace/scenario_trace.hpp"
#include "driver/trace/trace_file.hpp"
#include "driver/yaml/text_file.hpp"
#include "properties/finding_code.hpp"
#include "reports/lacks.hpp"
#include "reports/pages/pages.hpp"
#include "reports/retries.hpp"
#include "reprise/error.hpp"
#include "reprise/store.hpp"
#include "sim/fibers/crash.hpp"
#include "sim/mutants/asked.hpp"

namespace reprise::driver {
namespace {

using reports::ScenarioResult;
using reports::Verdict;
using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

reports::ReportLane report_lane_of(LaneKind lane) {
  switch (lane) {
    case LaneKind::kSim:
      return reports::ReportLane::kSim;
    case LaneKind::kMpi:
      return reports::ReportLane::kMpi;
    case LaneKind::kGpu:
      return reports::ReportLane::kGpu;
    case LaneKind::kProgram:
      return reports::ReportLane::kProgram;
  }
  return reports::ReportLane::kSim;
}

std::string replay_line(const Scenario& scenario, LaneKind lane, const LaneOptions& options) {
  std::string line = "reprise run " + shell_word(scenario.file + scenario.row) + " --lane " +
                     std::string(name_of(lane));
  if (lane == LaneKind::kSim) line += " --seed " + std::to_string(options.seed);
  if (!options.mutant.empty()) line += " --mutant " + options.mutant;
  if (scenario.program) {
    const std::filesystem::path folder = scenario.program->trainer.folder;
    line += " --trainers " + shell_word(folder.parent_path().string());
    if (!options.python.empty()) line += " --python " + shell_word(options.python);
  }
  return line;
}

ProgramOptions program_options(const LaneOptions& options) {
  ProgramOptions own{
      .place = {options.python, std::filesystem::path(options.executable).parent_path().string(),
                options.executable},
      .keep = options.keep};
  if (options.controls) own.controls = options.controls;
  return own;
}

std::unique_ptr<Lane> make_lane(const Scenario& scenario, LaneKind lane,
                                const LaneOptions& options) {
  return lane == LaneKind::kSim ? make_sim_lane(scenario, options)
                                : make_process_lane(lane, scenario, options);
}

/// Returns the number of ranks of the largest life.
std::int32_t largest_world(const Scenario& scenario) {
  std::int32_t ranks = 0;
  for (const auto& life : scenario.lives) ranks = std::max(ranks, life.world_size());
  return ranks;
}

/// Records whether the mutant was never called. A mutant that is never called can't make a run
/// fail, so a pass then proves nothing and becomes inconclusive.
void require_asked(const std::string& mutant, const std::vector<LifeRecord>& lives,
                   ScenarioRun& run) {
  run.unasked = std::all_of(lives.begin(), lives.end(),
                            [](const LifeRecord& life) { return life.asked == 0; });
  if (!run.unasked || run.result.verdict != Verdict::kPass) return;
  run.result.verdict = Verdict::kInconclusive;
  run.result.code = name_of(judged::kOracleVacuous);
  run.result.reason = "nothing called the mutant " + mutant;
}

void refuse_to_overwrite(const Scenario& scenario, const LaneOptions& options) {
  if (options.keep.empty()) return;
  const auto kept = std::filesystem::path(options.keep) / scenario.name;
  if (!std::filesystem::exists(kept)) return;
  throw Error(Code::kUsage,
              "checkpoints are kept there already: remove them or name another --keep",
              {.file = kept.string()});
}

/// Throws USAGE, naming every folder in the way, unless the checkpoints of each scenario have a
/// free place. So a run of hours doesn't end at its last scenario.
void require_free_places(const std::vector<Scenario>& scenarios, const LaneOptions& options) {
  if (options.keep.empty()) return;
  std::vector<std::string> taken;
  for (const auto& scenario : scenarios) {
    const auto kept = std::filesystem::path(options.keep) / scenario.name;
    if (std::filesystem::exists(kept)) taken.push_back(kept.string());
  }
  if (taken.empty()) return;
  throw Error(Code::kUsage, "checkpoints are kept there already: remove " + join(taken, ", ") +
                                ", or name another --keep");
}

/// Returns the result of a scenario in which this program crashed.
ScenarioResult crashed(const Scenario& scenario, int signal, const std::string& replay) {
  ScenarioResult result = judge(scenario, {});
  result.verdict = Verdict::kFail;
  result.code = name_of(Code::kInternal);
  result.reason = std::string("the program crashed: ") + strsignal(signal);
  result.crashed = true;
  result.replay = replay;
  reports::restate_failure(result);
  return result;
}

/// Returns the result of a scenario that was planned and not run.
ScenarioResult not_run(const Scenario& scenario, const RunRequest& request,
                       const std::string& reason) {
  ScenarioResult result = judge(scenario, {});
  result.verdict = Verdict::kNotRun;
  result.reason = reason;
  result.replay = replay_line(scenario, request.lane, request.options);
  return result;
}

/// Runs the scenario, and again if it did not pass and the request wants that. A retry keeps its
/// checkpoints apart, and makes control runs of its own.
ScenarioResult run_with_retries(const Scenario& scenario, const RunRequest& request,
                                const LaneOptions& options) {
  LaneOptions again = options;
  std::size_t retries = 0;
  return reports::with_retries(run_scenario(scenario, request.lane, options), request.retries,
                               [&]() -> std::optional<ScenarioResult> {
                                 if (request.interrupted()) return std::nullopt;
                                 again.controls = std::make_shared<ControlBook>();
                                 if (!options.keep.empty())
                                   again.keep =
                                       options.keep + "/retry-" + std::to_string(++retries);
                                 return run_scenario(scenario, request.lane, again);
                               });
}

/// Runs the scenario, unless the user has interrupted the run. If the interruption comes while the
/// scenario runs, a failure proves nothing, because the processes of the ranks also receive the
/// signal.
ScenarioResult run_unless_interrupted(const Scenario& scenario, const RunRequest& request,
                                      const LaneOptions& options) {
  ScenarioResult result;
  if (!request.interrupted()) {
    const std::string again = replay_line(scenario, request.lane, options);
    const int crash = sim::crash_of(
        "the program crashed in " + scenario.name + "; see it again: " + again + "\n", [&] {
          result = run_with_retries(scenario, request, options);
          require_effect(scenario, request.lane, options, result);
        });
    if (crash != 0) return crashed(scenario, crash, again);
    const bool counts = request.lane == LaneKind::kSim || result.verdict == Verdict::kPass;
    if (counts || !request.interrupted()) return result;
  }
  return not_run(scenario, request, reports::kNotRunInterrupted);
}

/// Runs scenario `number` of the request, and adds what its ranks did to the trace if there is one.
/// `first_life` is the number of its first life among those of all scenarios.
ScenarioResult run_into_trace(const Scenario& scenario, std::size_t number,
                              std::uint32_t first_life, const RunRequest& request) {
  if (request.trace == nullptr) return run_unless_interrupted(scenario, request, request.options);
  LaneOptions options = request.options;
  if (request.trace->form() == TraceForm::kLines) {
    std::string lines;
    options.calls = [&](std::size_t life, const sim::LoggedEvent& call) {
      lines += event_line(scenario.name, life, call);
    };
    ScenarioResult result = run_unless_interrupted(scenario, request, options);
    request.trace->add(number, std::move(lines));
    return result;
  }
  ScenarioTrace trace(scenario, first_life);
  options.recorded = [&trace](std::size_t life, const sim::Recording& recording) {
    trace.add(life, recording);
  };
  ScenarioResult result = run_unless_interrupted(scenario, request, options);
  request.trace->add(number, trace.packets());
  return result;
}

/// Returns for each scenario the number of its first life among those of all scenarios, from 1.
std::vector<std::uint32_t> first_lives_of(const std::vector<Scenario>& scenarios) {
  std::vector<std::uint32_t> firsts;
  std::uint32_t next = 1;
  for (const auto& scenario : scenarios) {
    firsts.push_back(next);
    next += static_cast<std::uint32_t>(scenario.lives.size());
  }
  return firsts;
}

/// Lists the claims that a report from this lane does not prove.
std::vector<std::string> not_claimed_by(LaneKind lane, const LaneOptions& options,
                                        const reports::Report& report) {
  std::vector<std::string> texts;
  const bool none_ran = report.skipped.size() == report.scenarios.size();
  for (const auto& skipped : report.skipped) {
    std::string text = "lane " + std::string(name_of(lane)) +
                       (none_ran ? ": not run: " : ": not all was run: ") + skipped.reason;
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) {
      texts.push_back(std::move(text));
    }
  }
  for (const LaneKind other :
       {LaneKind::kSim, LaneKind::kMpi, LaneKind::kGpu, LaneKind::kProgram}) {
    if (other != lane) texts.push_back("lane " + std::string(name_of(other)) + ": not run here");
  }
  if (lane == LaneKind::kMpi || lane == LaneKind::kGpu) {
    texts.push_back("more than one node; a launcher other than " + options.launcher);
  }
  for (auto& text : reports::unshown_of_gpus(report)) texts.push_back(std::move(text));
  texts.emplace_back(
      "memory of plans, metadata, commit and retention: no bound is declared for it");
  return texts;
}

/// Records which checkpoints are in the store, and which of them the tracker names.
void note_stored(Store& store, LifeRecord& life) {
  auto& steps = life.stored_after.emplace();
  for (const auto& one : generations(store, kCheckpointRoot)) {
    const bool again = !steps.empty() && steps.back() == one.step.value;
    if (one.committed && !again) steps.push_back(one.step.value);
  }
  if (const auto tracked = tracked_step(store, kCheckpointRoot)) {
    life.tracked_after = tracked->value;
  }
}

/// Records the steps whose last save is known to be damaged.
void note_damaged(const Past& past, LifeRecord& life) {
  life.damaged_after.clear();
  for (const auto& save : past.saves) {
    if (save.damaged && save_of(past.saves, save.step) == &save) {
      life.damaged_after.push_back(save.step.value);
    }
  }
}

}  // namespace

std::vector<LifeRecord> run_lives(const Scenario& scenario, Lane& lane,
                                  const LaneOptions& options) {
  const sim::Policies policies = policies_of(options);
  std::vector<LifeRecord> lives;
  Past past;
  for (std::size_t i = 0; i < scenario.lives.size(); ++i) {
    const bool foreign = scenario.lives[i].command.has_value();
    lives.push_back(foreign ? run_foreign(scenario, i, lane, options, past) : lane.run(i, past));
    end_life(scenario, i, {lane.store(), *options.parsed}, policies, lives.back(), past);
    if (options.asked_seams) *options.asked_seams |= sim::take_asked_seams();
    if (!may_go_on(scenario, i, lives.back())) break;
  }
  lane.finish();
  return lives;
}

void end_life(const Scenario& scenario, std::size_t number, const JudgedStore& where,
              const sim::Policies& policies, LifeRecord& life, Past& past) {
  Store& store = where.store;
  add_life(life, past);
  for (auto& save : past.saves) save.modules = modules_of(scenario, save.life);
  const std::size_t of_processes = life.findings.size();
  life.findings.append(judge_store(where, scenario.checkpoint, past));
  life.findings.append(judge_contents(where, life));
  for (std::size_t i = of_processes; i < life.findings.size(); ++i)
    life.findings[i].phase = "store";
  note_stored(store, life);
  note_damaged(past, life);
  if (!may_go_on(scenario, number, life)) return;
  const std::uint64_t asked = sim::AskedCount::on_this_thread();
  try {
    do_between_lives(store, scenario.lives[number], policies, past, life.findings);
  } catch (const Error& error) {
    life.findings.push_back({.code = error.code(),
                             .text = "an action planned for the store after the life failed: " +
                                     judged::without_code(error.what(), error.code()),
                             .phase = "store"});
  } catch (const CheckFailure& defect) {
    life.findings.push_back({.code = Code::kInternal, .text = defect.what(), .phase = "store"});
  }
  life.asked += sim::AskedCount::on_this_thread() - asked;
  note_damaged(past, life);
}

std::optional<std::string> why_not(LaneKind lane, const Scenario& scenario,
                                   const LaneOptions& options) {
  if (std::find(scenario.lanes.begin(), scenario.lanes.end(), lane) == scenario.lanes.end()) {
    return scenario.lanes_reason;
  }
  if (lane == LaneKind::kSim) return std::nullopt;
  if (lane == LaneKind::kProgram) {
    if (!scenario.program) return "it has no trainer";
    const ProgramOptions own = program_options(options);
    return own.controls->why_not(scenario.program->trainer, own.place);
  }
  if (auto reason = why_not_countable(scenario)) return reason;
  if (auto reason = why_no_ranks(options.executable)) return reason;
  return lane == LaneKind::kGpu ? why_no_gpus(largest_world(scenario), options.ranks_per_gpu)
                                : std::nullopt;
}

ScenarioRun run_watched(const Scenario& scenario, LaneKind lane, const LaneOptions& options) {
  const auto start = SteadyClock::now();
  refuse_to_overwrite(scenario, options);
  ScenarioRun run;
  if (const auto reason = why_not(lane, scenario, options)) {
    run.result = judge(scenario, {});
    run.result.verdict = Verdict::kNotRun;
    run.result.reason = *reason;
  } else if (scenario.program) {
    run.result = run_program_scenario(scenario, program_options(options));
  } else {
    const auto lives = run_lives(scenario, *make_lane(scenario, lane, options), options);
    run.result = judge(scenario, lives);
    run.broke_down = broke_down(lives);
    if (!options.mutant.empty() || options.asked_seams) {
      for (const auto& [code, findings] : codes_of(lives)) run.codes.insert(code);
    }
    if (!options.mutant.empty()) require_asked(options.mutant, lives, run);
  }
  reports::restate_failure(run.result);
  run.result.seconds = seconds_since(start);
  run.result.replay = replay_line(scenario, lane, options);
  return run;
}

ScenarioResult run_scenario(const Scenario& scenario, LaneKind lane, const LaneOptions& options) {
  return run_watched(scenario, lane, options).result;
}

reports::Report run_all(const RunRequest& request, const Watch& watch) {
  return run_these(read_catalogue(request.selection), request, watch);
}

reports::Report run_these(const std::vector<Scenario>& scenarios, const RunRequest& given,
                          const Watch& watch) {
  RunRequest request = given;
  require_free_places(scenarios, request.options);
  if (!request.options.controls) request.options.controls = std::make_shared<ControlBook>();
  const auto start = SteadyClock::now();
  reports::Report report = empty_report(report_lane_of(request.lane));
  if (request.lane == LaneKind::kMpi || request.lane == LaneKind::kGpu) {
    const RankLibraries libraries = libraries_of_ranks(request.options.executable);
    report.machine.mpi = libraries.mpi;
    report.machine.nccl = libraries.nccl;
  }
  report.mutant = request.options.mutant;
  report.seed = request.options.seed;
  report.planned = scenarios.size();
  report.scenarios.resize(scenarios.size());
  RunProgress progress{.total = scenarios.size()};
  const auto first_lives = first_lives_of(scenarios);
  std::mutex mutex;
  std::atomic<bool> crash = false;
  std::atomic<bool> enough = false;
  request.interrupted = [&crash, given = given.interrupted] { return crash || given(); };
  run_jobs(scenarios.size(), request.jobs, [&](std::size_t i) {
    {
      const std::lock_guard lock(mutex);
      progress.running = scenarios[i].name;
      watch(progress);
    }
    if (enough) {
      report.scenarios[i] = not_run(scenarios[i], request, reports::kNotRunAfterFailure);
    } else {
      report.scenarios[i] = run_into_trace(scenarios[i], i, first_lives[i], request);
    }
    if (report.scenarios[i].crashed) crash = true;
    const std::lock_guard lock(mutex);
    ++progress.done;
    const Verdict verdict = report.scenarios[i].verdict;
    if (verdict == Verdict::kFail || verdict == Verdict::kInconclusive) ++progress.failures;
    if (request.exit_first && progress.failures > 0) enough = true;
    watch(progress);
  });
  if (request.timelines && !crash && request.lane == LaneKind::kSim) {
    add_timelines(scenarios, request, report);
  }
  report.interrupted = request.interrupted();
  for (const auto& result : report.scenarios) {
    if (result.verdict == Verdict::kNotRun) report.skipped.push_back({result.name, result.reason});
  }
  report.verdict = reports::overall(report);
  report.seconds = seconds_since(start);
  report.not_claimed = not_claimed_by(request.lane, request.options, report);
  return report;
}

void add_unreadable(const std::vector<UnreadableFile>& files, reports::Report& report) {
  for (const auto& file : files) {
    ScenarioResult result;
    result.name = name_of_file(file.file);
    const bool taken =
        std::any_of(report.scenarios.begin(), report.scenarios.end(),
                    [&result](const auto& other) { return other.name == result.name; });
    if (taken) result.name = file.file;
    result.file = file.file;
    result.code = name_of(Code::kUsage);
    result.reason = "its file can't be read: " + file.reason();
    report.skipped.push_back({result.name, result.reason});
    report.scenarios.push_back(std::move(result));
    ++report.planned;
  }
  report.verdict = reports::overall(report);
}

reports::Report empty_report(reports::ReportLane lane) {
  const BuildInfo build = build_info();
  reports::Report report;
  report.project = {
      .commit = std::string(build.commit), .dirty = build.dirty, .build = std::string(build.build)};
  report.lane = lane;
  report.machine = this_machine();
  report.started = utc_now();
  return report;
}

reports::Report report_to_add_to(const std::string& directory, reports::ReportLane lane) {
  reports::Report fresh = empty_report(lane);
  const std::filesystem::path file = std::filesystem::path(directory) / "report.json";
  if (!std::filesystem::exists(file)) {
    fresh.not_claimed.emplace_back("scenarios: this report has none");
    return fresh;
  }
  reports::Report there = reports::parse_report(text_of(file), file.string());
  const bool same = there.lane == fresh.lane && there.project.commit == fresh.project.commit &&
                    there.project.build == fresh.project.build;
  there.project.dirty = there.project.dirty || fresh.project.dirty;
  if (same) return there;
  const auto of = [](const reports::Report& report) {
    return "lane " + name_of(report.lane) + ", commit " + report.project.commit + ", " +
           report.project.build;
  };
  throw Error(Code::kUsage,
              "there is a report of " + of(there) + ", to which nothing from " + of(fresh) +
                  " can be added; name another --report",
              {.file = file.string()});
}

void require_writable(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<fs::path> made;
  for (fs::path at = fs::absolute(directory); !fs::exists(at, ignored); at = at.parent_path()) {
    made.push_back(at);
  }
  PosixStore store(directory);
  store.make_directory("");
  const std::string probe = ".reprise-writable";
  write_atomically(store, probe, {});
  store.remove(probe);
  for (const auto& path : made) fs::remove(path, ignored);
}

std::string write_report(const reports::Report& report, const std::string& directory) {
  PosixStore store(directory);
  store.make_directory("");
  reports::Report written = report;
  reports::restate_lacks(written);
  const std::string json = to_json(written);
  write_atomically(store, "report.json", as_bytes(json));
  std::string digest = hex(sha256_of(as_bytes(json)));
  write_atomically(store, "junit.xml", as_bytes(to_junit(written, digest)));
  write_pages(written, digest, {}, directory);
  return digest;
}

void write_pages(const reports::Report& report, const std::string& report_sha256,
                 std::span<const reports::PastReport> earlier, const std::string& directory) {
  PosixStore store(directory);
  store.make_directory("");
  write_atomically(store, "report.html", as_bytes(to_html(report, report_sha256, earlier)));
  write_atomically(store, "summary.md", as_bytes(to_summary(report, report_sha256, earlier)));
}

}  // namespace reprise::driver
