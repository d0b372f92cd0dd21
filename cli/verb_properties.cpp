#include <fmt/format.h>

#include <mutex>

#include "cli/arguments/part_of_work.hpp"
#include "cli/interrupts.hpp"
#include "cli/output/progress_line.hpp"
#include "cli/output/table.hpp"
#include "cli/verb.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/base/print.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/record/build_info.hpp"
#include "driver/runs/property.hpp"
#include "driver/runs/run.hpp"
#include "driver/runs/run_jobs.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

class PropertiesVerb final : public Verb {
 public:
  std::string_view name() const override { return "properties"; }
  std::string_view summary() const override {
    return "Check properties that must hold for every scenario on random scenarios";
  }
  std::string_view examples() const override {
    return "  reprise properties                     the cases of this commit\n"
           "  reprise properties --jobs 2 --report build/report    added to the run's report "
           "there\n"
           "  reprise properties survives --cases 1000 --seed 77 --out found\n"
           "  reprise properties --list\n";
  }
  void declare(Options& options) override {
    options.optional_positional(names_, "NAME", "names of properties; default: all")
        .flag(list_, "--list", "list all properties with their numbers of cases")
        .number(cases_, "--cases", 1,
                "number of cases of each property; default: a number per property")
        .number(seed_, "--seed", 0, "seed of the cases; default: derived from the commit")
        .text(shard_, "--shard", "I/N",
              "check only shard I of N of the properties, for several machines; 'reprise merge' "
              "joins their reports")
        .number(jobs_, "--jobs", 1, "number of properties to run in parallel")
        .text(out_, "--out", "DIR", "write the smallest failing case there, as a scenario file")
        .text(report_, "--report", "DIR",
              "write report.json, junit.xml, report.html and summary.md there; if there already is "
              "a run's report, add the properties to it")
        .flag(quiet_, "-q,--quiet", "don't print progress or the table of random choices");
  }

  ExitCode run(const Console& console) override {
    auto chosen = chosen_properties();
    if (list_) return list(chosen, console);
    const PartOfWork part = part_of_work(shard_);
    const reports::Shard shard = {"properties", part.number, part.of, chosen.size()};
    part.keep_own(chosen);
    const Interrupts interrupts;
    reports::Report report;
    if (!report_.empty()) {
      driver::require_writable(report_);
      report = driver::report_to_add_to(report_, reports::ReportLane::kSim);
    }
    if (!out_.empty()) driver::require_writable(out_);
    const auto runs = run_all(chosen, console);
    print(runs, console);
    const std::uint64_t untried = untried_in(runs);
    if (untried > 0) {
      console.out << "\ninterrupted: " << counted(untried, "case") << " not tried\n"
                  << left_as_it_was(report_);
    } else if (!report_.empty()) {
      put_shard(report, shard);
      write(runs, report);
    }
    for (const auto& run : runs) {
      if (run.counterexample) return ExitCode::kFail;
    }
    return untried > 0 ? ExitCode::kInconclusive : ExitCode::kPass;
  }

 private:
  static std::uint64_t untried_in(const std::vector<driver::PropertyRun>& runs) {
    std::uint64_t untried = 0;
    for (const auto& run : runs) untried += run.untried;
    return untried;
  }

  std::vector<const driver::Property*> chosen_properties() const {
    std::vector<const driver::Property*> chosen;
    for (const auto& name : names_) chosen.push_back(&driver::property_named(name));
    if (!chosen.empty()) return chosen;
    for (const auto& property : driver::properties()) chosen.push_back(&property);
    return chosen;
  }

  static ExitCode list(const std::vector<const driver::Property*>& chosen, const Console& console) {
    Table table({{"property"}, {"cases"}, {"what must hold"}});
    for (const auto* property : chosen) {
      table.add({std::string(property->name), std::to_string(property->cases),
                 std::string(property->says)});
    }
    table.print(console);
    return ExitCode::kPass;
  }

  std::vector<driver::PropertyRun> run_all(const std::vector<const driver::Property*>& chosen,
                                           const Console& console) const {
    const std::uint64_t seed = seed_ >= 0 ? static_cast<std::uint64_t>(seed_)
                                          : driver::seed_of_commit(build_info().commit);
    std::vector<driver::PropertyRun> runs(chosen.size());
    std::mutex mutex;
    std::size_t begun = 0;
    PosixClock clock;
    ProgressLine line(console, clock, "properties",
                      quiet_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kYes);
    driver::run_jobs(chosen.size(), static_cast<std::size_t>(jobs_), [&](std::size_t i) {
      const driver::Property& property = *chosen[i];
      {
        const std::lock_guard lock(mutex);
        line.advance(property.name, begun++, chosen.size());
      }
      runs[i] = driver::run_property(
          property, {.seed = seed,
                     .cases = cases_ > 0 ? static_cast<std::uint64_t>(cases_) : property.cases,
                     .limits = {},
                     .lane = {},
                     .out = out_,
                     .interrupted = Interrupts::came});
    });
    return runs;
  }

  void print(const std::vector<driver::PropertyRun>& runs, const Console& console) const {
    Table table({{"property"}, {"verdict"}, {"cases", Align::kRight}, {"seed", Align::kRight}});
    for (const auto& run : runs) {
      table.add({run.result.name, reports::name_of(run.result.verdict),
                 std::to_string(run.result.cases), std::to_string(run.result.seed)});
    }
    table.print(console);
    for (const auto& run : runs) {
      if (!quiet_ && run.result.cases > 0)
        console.out << '\n' << run.result.name << ": " << run.distribution.table();
      if (!run.counterexample) continue;
      const auto& found = *run.counterexample;
      console.out << fmt::format(
          "\n{} is broken: {}: {}\nseen again: reprise properties {} --seed {} --cases {}\n"
          "shrunk in {} runs{}:\n{}",
          run.result.name, found.failure.code, found.failure.reason, run.result.name,
          run.result.seed, run.result.cases, found.tries,
          found.file.empty() ? "" : " to " + found.file, to_yaml(found.scenario));
    }
  }

  void write(const std::vector<driver::PropertyRun>& runs, reports::Report& report) const {
    for (const auto& run : runs) {
      std::erase_if(report.properties,
                    [&run](const auto& other) { return other.name == run.result.name; });
      report.properties.push_back(run.result);
    }
    report.verdict = overall(report);
    driver::write_report(report, report_);
  }

  std::vector<std::string> names_;
  bool list_ = false;
  std::int64_t cases_ = 0;  ///< 0 if not given
  std::int64_t seed_ = -1;  ///< -1 if not given
  std::int64_t jobs_ = 1;
  std::string out_;
  std::string report_;
  std::string shard_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_properties() { return std::make_unique<PropertiesVerb>(); }

}  // namespace reprise::cli
