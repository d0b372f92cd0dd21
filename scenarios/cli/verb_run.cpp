#include <fmt/format.h>

#include "core/base/error.hpp"
#include "scenarios/cli/verb.hpp"
#include "scenarios/driver/run.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::cli {
namespace {

constexpr int kPlainColumns = 120;

class RunVerb final : public Verb {
 public:
  std::string_view name() const override { return "run"; }
  std::string_view summary() const override { return "Run scenarios and judge them"; }
  std::string_view examples() const override {
    return "  reprise run scenarios                          everything, on the simulated lane\n"
           "  reprise run scenarios/placements/tp2dp2-to-tp4.yaml --lane mpi\n"
           "  reprise run scenarios --report out --keep out/checkpoints\n"
           "  reprise run scenarios --mutant floor-vs-ceil-chunk     must turn red\n";
  }
  void declare(Options& options) override {
    options.positional(paths_, "PATH", "scenario files or folders")
        .text(lane_, "--lane", "sim|mpi|gpu", "where they run; sim unless told")
        .text(launcher_, "--launcher", "mpirun|srun", "what starts the ranks of the mpi lane")
        .text(report_, "--report", "DIR", "write report.json and junit.xml there")
        .text(keep_, "--keep", "DIR", "leave the checkpoints there, one folder a scenario")
        .text(mutant_, "--mutant", "NAME", "switch a historical defect on")
        .number(seed_, "--seed", 0, "of the simulated scheduler")
        .number(jobs_, "--jobs", 1, "scenarios at a time on the simulated lane")
        .flag(quiet_, "-q,--quiet", "no progress");
  }

  ExitCode run(const Console& console) override {
    driver::RunRequest request;
    request.paths = paths_;
    request.lane = driver::lane_named(lane_);
    request.jobs = static_cast<std::size_t>(jobs_);
    request.options = {.seed = static_cast<std::uint64_t>(seed_),
                       .mutant = mutant_,
                       .keep = keep_,
                       .launcher = checked_launcher(),
                       .executable = console.executable};
    if (!mutant_.empty()) sim::mutant_named(mutant_);  // a wrong name is said before anything runs
    const bool shows_progress = console.err_is_terminal && !quiet_;
    const auto report = driver::run_all(
        request, [&](std::size_t done, std::size_t total, const std::string& scenario) {
          if (shows_progress) console.err << fmt::format("[{}/{}] {}\n", done + 1, total, scenario);
        });
    const int columns = console.out_width > 0 ? static_cast<int>(console.out_width) : kPlainColumns;
    console.out << to_table(report, columns);
    if (!report_.empty()) {
      driver::write_report(report, report_);
      console.out << "\nreport: " << report_ << "/report.json\n";
    }
    console.out << fmt::format("\n{}: {} scenario{} on lane {} in {:.1f} s\n",
                               reports::name_of(report.verdict), report.scenarios.size(),
                               report.scenarios.size() == 1 ? "" : "s", lane_, report.seconds);
    return code_of(report.verdict);
  }

 private:
  std::string checked_launcher() const {
    if (launcher_ == "mpirun" || launcher_ == "srun") return launcher_;
    throw Error(Code::kUsage, "no launcher is called '" + launcher_ + "'; there are: mpirun, srun");
  }

  static ExitCode code_of(reports::Verdict verdict) {
    switch (verdict) {
      case reports::Verdict::kPass:
        return ExitCode::kPass;
      case reports::Verdict::kFail:
        return ExitCode::kFail;
      default:
        return ExitCode::kInconclusive;
    }
  }

  std::vector<std::string> paths_;
  std::string lane_ = "sim";
  std::string launcher_ = "mpirun";
  std::string report_;
  std::string keep_;
  std::string mutant_;
  std::int64_t seed_ = 1;
  std::int64_t jobs_ = 1;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_run() { return std::make_unique<RunVerb>(); }

}  // namespace reprise::cli
