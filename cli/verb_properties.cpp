#include <fmt/format.h>

#include "cli/evidence_verb.hpp"
#include "cli/frame/interrupts.hpp"
#include "cli/output/table.hpp"
#include "core/base/print.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/record/build_info.hpp"
#include "driver/runs/property.hpp"
#include "driver/runs/run.hpp"
#include "driver/runs/run_jobs.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

class PropertiesVerb final : public EvidenceVerb {
 public:
  std::string_view name() const override { return "properties"; }
  bool is_subject() const override { return true; }
  std::string_view summary() const override {
    return "Check properties that must hold for every scenario on random scenarios";
  }
  std::string_view examples() const override {
    return "  reprise search properties --jobs 2               the cases of this commit\n"
           "  reprise search properties --report build/report  added to the run's report there\n"
           "  reprise search properties survives --cases 1000 --seed 77 --out found\n"
           "  reprise search properties --list\n";
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
        .text(out_, "--out", "DIR", "write the smallest failing case there, as a scenario file");
    declare_evidence(options);
  }

  ExitCode run(const Console& console) override {
    auto chosen = chosen_properties();
    if (list_) return list(chosen, console);
    const PartOfWork part = part_of_work(shard_);
    const reports::Shard shard = {"properties", part.number, part.of, chosen.size()};
    part.keep_own(chosen);
    const Interrupts interrupts;
    require_report();
    if (!out_.empty()) driver::require_writable(out_);
    const auto runs = run_all(chosen, console);
    print(runs, console);
    const std::uint64_t untried = untried_in(runs);
    if (untried > 0) {
      console.out << "\ninterrupted: " << counted(untried, "case") << " not tried\n"
                  << left_as_it_was(report_);
    } else {
      add_to_report([&](reports::Report& report) {
        put_shard(report, shard);
        put(runs, report);
      });
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
                                           const Console& console) {
    const std::uint64_t seed = seed_ >= 0 ? static_cast<std::uint64_t>(seed_)
                                          : driver::seed_of_commit(build_info().commit);
    std::vector<driver::PropertyRun> runs(chosen.size());
    ProgressLine line = progress_line(console);
    driver::run_jobs(chosen.size(), jobs(), [&](std::size_t i) {
      const driver::Property& property = *chosen[i];
      line.advance(property.name, i, chosen.size());
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
          "\n{} is broken: {}: {}\nseen again: reprise search properties {} --seed {} --cases {}\n"
          "shrunk in {} runs{}:\n{}",
          run.result.name, found.failure.code, found.failure.reason, run.result.name,
          run.result.seed, run.result.cases, found.tries,
          found.file.empty() ? "" : " to " + found.file, to_yaml(found.scenario));
    }
  }

  static void put(const std::vector<driver::PropertyRun>& runs, reports::Report& report) {
    for (const auto& run : runs) {
      std::erase_if(report.properties,
                    [&run](const auto& other) { return other.name == run.result.name; });
      report.properties.push_back(run.result);
    }
  }

  std::vector<std::string> names_;
  bool list_ = false;
  std::int64_t cases_ = 0;  ///< 0 if not given
  std::int64_t seed_ = -1;  ///< -1 if not given
  std::string out_;
  std::string shard_;
};

}  // namespace

std::unique_ptr<Verb> make_properties() { return std::make_unique<PropertiesVerb>(); }

}  // namespace reprise::cli
