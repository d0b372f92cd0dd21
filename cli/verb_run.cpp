#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <vector>

#include "cli/arguments/part_of_work.hpp"
#include "cli/arguments/report_argument.hpp"
#include "cli/frame/interrupts.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/progress_line.hpp"
#include "cli/output/run_text.hpp"
#include "cli/output/text_output.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/base/print.hpp"
#include "driver/lanes/scratch_directory.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/runs/determinism.hpp"
#include "driver/runs/field_options.hpp"
#include "driver/runs/heap_order.hpp"
#include "driver/runs/replay.hpp"
#include "driver/runs/run.hpp"
#include "driver/trace/trace_file.hpp"
#include "reports/retries.hpp"
#include "reprise/error.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::cli {
namespace {

constexpr int kPlainColumns = 120;
constexpr std::int64_t kRanksPerGpuMax = 1024;

class RunVerb final : public Verb {
 public:
  std::string_view name() const override { return "run"; }
  std::string_view summary() const override { return "Run scenarios and judge them"; }
  std::string_view examples() const override {
    return "  reprise run scenarios                          everything, on the simulated lane\n"
           "  reprise run scenarios/placements/tp2dp2-to-tp4.yaml --lane mpi\n"
           "  reprise run scenarios --tag gpu-shared --lane gpu --ranks-per-gpu 6\n"
           "  reprise run scenarios --tag core --ranks all      show what each rank compared\n"
           "  reprise run scenarios --report out --keep out/checkpoints\n"
           "  reprise run scenarios --tag core --jobs 2 --double\n"
           "  reprise run scenarios -k ep2 --trace ep2.pftrace   to look at in ui.perfetto.dev\n"
           "  reprise run scenarios --list                     names and tags; runs nothing\n"
           "  reprise run scenarios -k 'ep2 and not mimo' --not-tag gpu-shared\n"
           "  reprise run mine --dry-run                       check files, say what would run\n"
           "  reprise run mine --keep-going                    run the files without mistakes\n"
           "  reprise run --last-failed out -x                 what did not pass in the report "
           "there\n"
           "  reprise run scenarios --shard 2/4 --report out   the second of four machines\n"
           "  reprise run 'scenarios/commit/fall-back.yaml[step=2]'   these rows of a table\n"
           "  reprise run scenarios/mimo/layouts.yaml --no-load-optim --save out\n"
           "  reprise run scenarios/mimo/layouts.yaml --load out    continue from there\n"
           "  reprise run scenarios --mutant floor-vs-ceil-chunk     must turn red\n";
  }
  void declare(Options& options) override {
    options.optional_positional(paths_, "PATH", "scenario files or folders")
        .text(last_failed_, "--last-failed", "REPORT",
              "in place of PATH: run the scenarios that did not pass in that report")
        .text(shard_, "--shard", "I/N",
              "run only shard I of N, for several machines; 'reprise merge' joins their reports")
        .flag(exit_first_, "-x,--exit-first", "begin no further scenario once one did not pass")
        .number(retries_, "--retries", 0,
                "lane program: run what did not pass up to N more times; what passes then is flaky "
                "(FLAKY), and the exit code is 3")
        .flag(allow_flaky_, "--allow-flaky", "exit code 0 if all else passed; the report says it")
        .text(lane_, "--lane", "sim|mpi|gpu|program",
              "where scenarios run; default: sim; program runs those with trainers")
        .text(tag_, "--tag", "NAME", "run only scenarios with this tag")
        .texts(not_tags_, "--not-tag", "NAME",
               "leave out scenarios with this tag; may be given more than once")
        .text(names_, "-k,--names", "EXPR",
              "run only scenarios whose names satisfy this expression: parts of names with and, "
              "or, not and parentheses")
        .flag(list_, "--list", "list what would run with its tags, and all tags; run nothing")
        .flag(dry_run_, "--dry-run",
              "read and check everything and say what would run on each lane; run nothing")
        .flag(keep_going_, "--keep-going",
              "if some files have mistakes, run the others; the exit code is then nonzero")
        .text(launcher_, "--launcher", "mpirun|srun",
              "program that starts the ranks of the lanes mpi and gpu")
        .number(ranks_per_gpu_, "--ranks-per-gpu", 1,
                "lane gpu: how many ranks of a scenario may share a device; default: 1")
        .text(python_, "--python", "PATH",
              "lane program: the Python that runs trainers; default: $REPRISE_PYTHON, or python3")
        .text(
            trainers_, "--trainers", "DIR",
            "lane program: folder of the trainers; default: trainers beside the scenarios. A life "
            "is ended if it reports nothing for the `seconds` of its trainer.yaml, or for 4 times "
            "the longest silence of the first life; the scenario then runs once more, and the "
            "report shows both tries")
        .text(report_, "--report", "DIR",
              "write report.json, junit.xml, report.html and summary.md there")
        .text(keep_, "--keep,--save", "DIR", "keep the checkpoints there, one folder per scenario")
        .text(record_, "--record", "DIR", "write each scenario with its result there")
        .text(trace_, "--trace", "FILE",
              "write what every rank did there, as a Perfetto trace: in virtual time on the lane "
              "sim, in real time on the lanes mpi and gpu; FILE.txt has a line for each event of "
              "the lane sim, to compare with those of a build that passes")
        .text(mutant_, "--mutant", "NAME", "switch on a historical defect")
        .number(seed_, "--seed", 0, "seed of the simulated scheduler and of --rows")
        .number(rows_, "--rows", 0, "run at most N rows of each table, drawn by the seed; 0: all")
        .number(jobs_, "--jobs", 1, "number of scenarios to run in parallel")
        .text(ranks_, "--ranks", "TAG",
              "show what each rank compared, for scenarios with this tag, or: all")
        .flag(double_, "--double",
              "run everything twice: in a second process; for other lanes, on the lane sim")
        .number(heap_seed_, "--heap-seed", 0,
                "start with holes in the heap, drawn by N, so that memory addresses differ; 0: "
                "none; the second run of --double has them")
        .text(options_.load, "--load", "DIR",
              "start each first life from the checkpoint there, or from what a run with --save DIR "
              "left")
        .number(save_interval_, "--save-interval", 0,
                "also save after every Nth iteration; 0: only where the scenarios say")
        .flag(options_.no_save_optim, "--no-save-optim", "save without the optimizer")
        .flag(options_.no_save_rng, "--no-save-rng", "save without random states")
        .flag(options_.no_load_optim, "--no-load-optim", "load without the optimizer")
        .flag(options_.no_load_scheduler, "--no-load-scheduler", "load without the schedule")
        .flag(options_.no_load_rng, "--no-load-rng", "load without random states")
        .flag(options_.finetune, "--finetune", "load only weights, and start at iteration 0")
        .flag(options_.fully_reshardable, "--dist-ckpt-optim-fully-reshardable",
              "save optimizers as fully_reshardable")
        .text(
            log_, "--log", "info|debug",
            "log one line per phase and rank to stderr, or to REPORT/log on the lanes mpi and gpu")
        .flag(quiet_, "-q,--quiet", "no progress");
  }

  ExitCode run(const Console& console) override {
    if (!last_failed_.empty()) {
      take_last_failed(console);
      if (paths_.empty()) {
        console.out << "nothing to run: all scenarios of " << last_failed_ << " passed\n";
        return ExitCode::kInconclusive;
      }
    }
    driver::RunRequest request = checked_request(console);
    const Interrupts interrupts;
    if (heap_seed_ > 0) driver::shake_heap(static_cast<std::uint64_t>(heap_seed_));
    driver::Catalogue catalogue = driver::read_files(request.selection);
    const auto& scenarios = catalogue.scenarios;
    require_known_ranks(catalogue);
    options_.save_interval = save_interval_;
    driver::override_by(options_, catalogue.scenarios);
    console.err << mistakes_text(catalogue);
    if (list_ || dry_run_) return say_plan(console, catalogue, request);
    if (!catalogue.unreadable.empty() && !keep_going_) {
      console.err << "reprise run: nothing was run"
                  << (scenarios.empty() ? "" : "; --keep-going runs the files without mistakes")
                  << '\n';
      return ExitCode::kUnusable;
    }
    for (const auto& directory : {report_, record_, keep_}) {
      if (!directory.empty()) driver::require_writable(directory);
    }
    // A run writes its report in any case, and its trace and its logs may stand beside it.
    if (!report_.empty()) std::filesystem::create_directories(report_);
    std::optional<driver::TraceFile> trace;
    if (!trace_.empty()) request.trace = &trace.emplace(trace_);
    request.interrupted = [&interrupts] { return interrupts.came(); };
    auto report = run_with_status(console, scenarios, request);
    driver::add_unreadable(catalogue.unreadable, report);
    put_shard(report,
              {"scenarios", request.selection.shard, request.selection.shards, catalogue.whole});
    if (options_.any()) {
      const std::string said = driver::to_string(options_);
      report.not_claimed.push_back("the scenarios as they are written: overridden by " + said);
      for (auto& result : report.scenarios) result.replay += " " + said;
    }
    print(console, scenarios, report);
    if (trace) {
      trace->finish();
      console.out << "trace: " << trace_ << '\n';
    }
    if (report.interrupted) print_what_is_left(console, request);
    if (!record_.empty()) record(scenarios, request, report);
    if (repetition_failed_) std::rethrow_exception(repetition_failed_);
    if (std::ranges::any_of(report.scenarios, &reports::ScenarioResult::crashed)) {
      return ExitCode::kInternal;
    }
    const bool one_lane = request.lane == driver::LaneKind::kSim;
    if (one_lane && determinism_mismatches(report) > 0) return ExitCode::kNotDeterministic;
    const bool failed = report.verdict == reports::Verdict::kFail;
    if (!failed && !catalogue.unreadable.empty()) return ExitCode::kUnusable;
    if (allow_flaky_ && is_flaky_alone(report)) return ExitCode::kPass;
    return exit_code_for(report.verdict);
  }

 private:
  ExitCode say_plan(const Console& console, const driver::Catalogue& catalogue,
                    const driver::RunRequest& request) const {
    std::vector<driver::LanePlan> plans = {
        plan_of(catalogue.scenarios, request.lane, request.options)};
    if (list_) {
      console.out << list_text(plans.front(), catalogue);
    } else {
      for (const auto lane :
           {driver::LaneKind::kSim, driver::LaneKind::kMpi, driver::LaneKind::kGpu}) {
        if (lane == request.lane || request.lane == driver::LaneKind::kProgram) continue;
        plans.push_back(plan_of(catalogue.scenarios, lane, request.options));
      }
      console.out << dry_run_text(plans, catalogue);
    }
    return catalogue.unreadable.empty() ? ExitCode::kPass : ExitCode::kUnusable;
  }

  /// Runs the scenarios, twice if that is asked for, and shows how far it is. If the second process
  /// breaks down, keeps the error in repetition_failed_, so that what the first run showed is told.
  reports::Report run_with_status(const Console& console,
                                  const std::vector<driver::Scenario>& scenarios,
                                  const driver::RunRequest& request) {
    PosixClock clock;
    ProgressLine line(console, clock, "run",
                      quiet_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kYes);
    const std::uint64_t start = clock.now_ns();
    reports::Report report =
        driver::run_these(scenarios, request, [&](const driver::RunProgress& progress) {
          line.show(
              request.interrupted()
                  ? "interrupted: waiting for running scenarios; press Ctrl-C again to end at once"
                  : status_text(progress, static_cast<double>(clock.now_ns() - start) / 1e9));
        });
    if (!double_ || report.interrupted) return report;
    line.show("running everything again, in a second process");
    std::vector<driver::Course> elsewhere;
    try {
      elsewhere = driver::courses_elsewhere(request);
    } catch (const Error& error) {
      repetition_failed_ = std::current_exception();
      report.not_claimed.push_back("that a second run shows the same: " + error.message());
    }
    if (request.interrupted()) {
      repetition_failed_ = nullptr;
      report.interrupted = true;  // the second process was, too, so its courses prove nothing
      report.verdict = overall(report);
    } else if (!repetition_failed_) {
      driver::compare_courses(elsewhere, report);
    }
    return report;
  }

  /// After an interruption, names what this run leaves on disk.
  void print_what_is_left(const Console& console, const driver::RunRequest& request) const {
    std::vector<std::string> left;
    const std::string& kept = request.options.keep;
    if (!kept.empty()) left.push_back("the checkpoints of what ran, in " + kept);
    if (!report_.empty()) left.push_back("the report of what ran, in " + report_);
    if (!trace_.empty()) left.push_back("the trace of what ran, in " + trace_);
    for (const auto& scratch : driver::scratch_directories()) {
      left.push_back("a scratch directory to delete, " + scratch);
    }
    console.out << "left on disk: " << (left.empty() ? "nothing" : join(left, "; ")) << '\n';
  }

  /// Takes the scenarios that did not pass in the report as those to run.
  void take_last_failed(const Console& console) {
    if (!paths_.empty()) {
      throw Error(Code::kUsage, "--last-failed says what to run: leave out " + paths_.front());
    }
    for (const auto& result : read_report(last_failed_, console.err).report.scenarios) {
      if (result.verdict == reports::Verdict::kPass) continue;
      const auto row = result.name.find('[');
      paths_.push_back(result.file + (row == std::string::npos ? "" : result.name.substr(row)));
    }
  }

  driver::RunRequest checked_request(const Console& console) const {
    if (paths_.empty()) {
      throw Error(
          Code::kUsage,
          "give a PATH, a scenario file or a folder, or a report with --last-failed REPORT");
    }
    driver::RunRequest request;
    const PartOfWork part = part_of_work(shard_);
    request.lane = driver::lane_named(lane_);
    request.selection = {paths_,
                         tag_,
                         static_cast<std::size_t>(rows_),
                         static_cast<std::uint64_t>(seed_),
                         trainers_,
                         request.lane == driver::LaneKind::kProgram,
                         names_,
                         not_tags_,
                         part.number,
                         part.of};
    require_options_of(request.lane);
    require_trace_of(request.lane);
    if (double_ && options_.any()) {
      throw Error(Code::kUsage,
                  "--double reads the scenarios again as they are written; leave out either "
                  "--double or the options of the training job");
    }
    request.jobs = static_cast<std::size_t>(jobs_);
    request.timelines = !report_.empty();
    request.exit_first = exit_first_;
    request.retries = static_cast<std::size_t>(retries_);
    request.options = {.seed = static_cast<std::uint64_t>(seed_),
                       .mutant = mutant_,
                       .keep = keep_,
                       .launcher = checked_launcher(),
                       .executable = console.executable,
                       .ranks_per_gpu = checked_ranks_per_gpu(),
                       .python = checked_python(),
                       .log = checked_log(request.lane)};
    if (!mutant_.empty()) sim::mutant_named(mutant_);  // rejects an unknown name at once
    if (list_ && dry_run_) {
      throw Error(Code::kUsage, "--list and --dry-run print different things; give one of them");
    }
    return request;
  }

  /// Throws USAGE for an option that has no effect in the lane. In the lane `program`, trainers are
  /// separate programs, to which these options do not apply.
  void require_options_of(driver::LaneKind lane) const {
    const bool program = lane == driver::LaneKind::kProgram;
    if (!program && (!python_.empty() || !trainers_.empty())) {
      throw Error(Code::kUsage, "--python and --trainers belong to --lane program");
    }
    if (!program && retries_ > 0) {
      throw Error(Code::kUsage, "--retries belongs to --lane program: elsewhere nothing is flaky");
    }
    if (program && (double_ || !mutant_.empty() || options_.any() || save_interval_ > 0)) {
      throw Error(Code::kUsage,
                  "the lane program runs other people's programs: leave out --double, --mutant and "
                  "the options of the training job");
    }
  }

  /// Throws USAGE unless the ranks of the lane record what they do.
  void require_trace_of(driver::LaneKind lane) const {
    if (trace_.empty()) return;
    if (lane != driver::LaneKind::kSim &&
        driver::trace_form_of(trace_) == driver::TraceForm::kLines) {
      throw Error(
          Code::kUsage,
          "--trace FILE.txt belongs to the lane sim: in real time events have no order that "
          "two runs share");
    }
    if (lane != driver::LaneKind::kProgram) return;
    throw Error(Code::kUsage,
                "--trace belongs to the lanes sim, mpi and gpu; the lane program runs other "
                "people's programs, whose calls nobody records");
  }

  std::string checked_python() const {
    const char* given = std::getenv("REPRISE_PYTHON");
    std::string python = !python_.empty() ? python_ : given != nullptr ? given : "";
    if (python.find('/') == std::string::npos) return python;
    return std::filesystem::absolute(python).string();
  }

  /// Throws if no scenario of the given files has the tag given by `--ranks`. Also considers
  /// scenarios that this run leaves out, so that a valid tag is never called unknown.
  void require_known_ranks(const driver::Catalogue& catalogue) const {
    if (ranks_.empty() || ranks_ == "all") return;
    if (catalogue.tags.contains(ranks_) || !catalogue.unreadable.empty()) return;
    std::vector<std::string> tags;
    for (const auto& [tag, count] : catalogue.tags) tags.push_back(tag);
    throw Error(Code::kUsage,
                fmt::format("--ranks: no scenario has the tag '{}'; there are: {}{}", ranks_,
                            join(tags, ", "), tags.empty() ? "all" : ", and all"));
  }

  void print(const Console& console, const std::vector<driver::Scenario>& scenarios,
             const reports::Report& report) const {
    const int columns = console.out_width > 0 ? static_cast<int>(console.out_width) : kPlainColumns;
    console.out << to_table(report, columns);
    print_ranks(console, scenarios, report);
    if (!quiet_) console.out << defaults_text(scenarios);
    if (!report_.empty()) {
      const std::string digest = driver::write_report(report, report_);
      console.out << "\nreport: " << report_ << "/report.json\nsha256: " << digest << '\n';
    }
    console.out << fmt::format("\n{}: {} on lane {} in {:.1f} s\n",
                               reports::name_of(report.verdict),
                               counted(report.scenarios.size(), "scenario"), lane_, report.seconds);
    const auto unread =
        std::count_if(report.scenarios.begin(), report.scenarios.end(), reports::is_unreadable);
    if (unread > 0) console.out << fmt::format("files with mistakes, not run: {}\n", unread);
    if (report.interrupted) {
      console.out << fmt::format(
          "interrupted: {} were not run\n",
          with_commas(report.skipped.size() - static_cast<std::size_t>(unread)));
    }
    if (double_ && !report.interrupted) {
      console.out << fmt::format("run twice: {}; different the second time: {}\n",
                                 with_commas(runs_doubled(report)),
                                 with_commas(determinism_mismatches(report)));
    }
  }

  void print_ranks(const Console& console, const std::vector<driver::Scenario>& scenarios,
                   const reports::Report& report) const {
    for (std::size_t i = 0; i < scenarios.size() && !ranks_.empty(); ++i) {
      const auto& tags = scenarios[i].tags;
      if (ranks_ != "all" && std::find(tags.begin(), tags.end(), ranks_) == tags.end()) continue;
      console.out << '\n' << to_rank_table(report.scenarios[i]);
    }
  }

  /// Writes each scenario to a file of its own, with the outcome of this run.
  void record(const std::vector<driver::Scenario>& scenarios, const driver::RunRequest& request,
              const reports::Report& report) const {
    for (std::size_t i = 0; i < scenarios.size(); ++i) {
      if (report.scenarios[i].verdict == reports::Verdict::kNotRun) continue;
      driver::Scenario scenario = scenarios[i];
      scenario.recorded = driver::record_of(report.scenarios[i], request.options, build_info());
      const std::filesystem::path file = std::filesystem::path(record_) / (scenario.name + ".yaml");
      std::filesystem::create_directories(file.parent_path());
      write_text(file.string(), to_yaml(scenario), "the record");
    }
  }

  driver::LogOptions checked_log(driver::LaneKind lane) const {
    driver::require_log_level(log_);
    driver::LogOptions log{log_, {}};
    if (!log.on() || lane == driver::LaneKind::kSim || lane == driver::LaneKind::kProgram)
      return log;
    if (report_.empty()) {
      throw Error(Code::kUsage,
                  "ranks of the lane " + lane_ + " write log files: say where with --report DIR");
    }
    log.directory = std::filesystem::absolute(report_) / "log";
    return log;
  }

  std::int32_t checked_ranks_per_gpu() const {
    if (ranks_per_gpu_ <= kRanksPerGpuMax) return static_cast<std::int32_t>(ranks_per_gpu_);
    throw Error(Code::kUsage, fmt::format("--ranks-per-gpu is at most {}", kRanksPerGpuMax));
  }

  std::string checked_launcher() const {
    if (launcher_ == "mpirun" || launcher_ == "srun") return launcher_;
    throw Error(Code::kUsage,
                "there is no launcher '" + launcher_ + "'; the launchers are: mpirun, srun");
  }

  std::vector<std::string> paths_;
  std::string last_failed_;
  std::string shard_;
  bool exit_first_ = false;
  std::int64_t retries_ = 0;
  bool allow_flaky_ = false;
  std::string lane_ = "sim";
  std::string launcher_ = "mpirun";
  std::string python_;
  std::string trainers_;
  std::string report_;
  std::string keep_;
  driver::FieldOptions options_;
  std::int64_t save_interval_ = 0;
  std::string trace_;
  std::string mutant_;
  std::string tag_;
  std::vector<std::string> not_tags_;
  std::string names_;
  bool list_ = false;
  bool dry_run_ = false;
  bool keep_going_ = false;
  std::string record_;
  std::string ranks_;
  std::string log_ = "off";
  std::int64_t rows_ = 0;
  std::int64_t heap_seed_ = 0;
  bool double_ = false;
  std::int64_t seed_ = 1;
  std::int64_t jobs_ = 1;
  std::int64_t ranks_per_gpu_ = 1;
  bool quiet_ = false;
  std::exception_ptr repetition_failed_;
};

}  // namespace

std::unique_ptr<Verb> make_run() { return std::make_unique<RunVerb>(); }

}  // namespace reprise::cli
