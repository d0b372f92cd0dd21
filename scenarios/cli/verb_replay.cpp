#include <fmt/format.h>

#include <fstream>

#include "core/base/error.hpp"
#include "scenarios/cli/verb.hpp"
#include "scenarios/driver/replay.hpp"
#include "scenarios/driver/run.hpp"
#include "scenarios/driver/scenario_writer.hpp"
#include "scenarios/driver/yaml_map.hpp"

namespace reprise::cli {
namespace {

class ReplayVerb final : public Verb {
 public:
  std::string_view name() const override { return "replay"; }
  std::string_view summary() const override {
    return "Run a scenario again and compare with what its file recorded";
  }
  std::string_view examples() const override {
    return "  reprise replay scenarios/regress/lost-master.yaml\n"
           "  reprise replay found.yaml --record     keep this run's outcome in the file\n"
           "  reprise replay found.yaml --record --mutant floor-vs-ceil-chunk\n";
  }
  void declare(Options& options) override {
    options.positional(file_, "FILE", "a scenario file")
        .flag(record_, "--record", "write the recorded: block instead of comparing with it")
        .text(mutant_, "--mutant", "NAME", "with --record: a historical defect to switch on")
        .number(seed_, "--seed", 0, "with --record: of the simulated scheduler");
  }

  ExitCode run(const Console& console) override {
    const driver::Scenario scenario = driver::read_scenario(file_);
    return record_ ? record(scenario, console) : replay(scenario, console);
  }

 private:
  static driver::Recorded run_once(const driver::Scenario& scenario,
                                   const driver::LaneOptions& options) {
    const auto result = driver::run_scenario(scenario, driver::LaneKind::kSim, options);
    return driver::record_of(result, options, build_info());
  }

  ExitCode record(const driver::Scenario& scenario, const Console& console) const {
    const driver::Recorded now =
        run_once(scenario, {.seed = static_cast<std::uint64_t>(seed_), .mutant = mutant_});
    const std::string text = driver::with_record(driver::read_yaml_text(file_), now);
    std::ofstream out(file_);
    out << text;
    out.close();
    if (!out) throw Error(Code::kIo, "the record can't be written", {.file = file_});
    console.out << fmt::format("{}: recorded {}{}{}\n", file_, now.verdict,
                               now.code.empty() ? "" : " ", now.code);
    return ExitCode::kPass;
  }

  ExitCode replay(const driver::Scenario& scenario, const Console& console) const {
    if (!mutant_.empty()) throw Error(Code::kUsage, "--mutant goes with --record");
    if (!scenario.recorded) {
      throw Error(Code::kUsage, "has no 'recorded:' block; 'reprise replay FILE --record' adds one",
                  {.file = file_});
    }
    const driver::Recorded& then = *scenario.recorded;
    const driver::Recorded now = run_once(scenario, {.seed = then.seed, .mutant = then.mutant});
    const driver::ReplayFinding found = driver::compare_replay(then, now);
    for (const auto& sentence : found.outcome) console.out << file_ << ": " << sentence << '\n';
    if (!found.course.empty()) console.out << file_ << ": " << found.course << '\n';
    if (!found.outcome.empty()) return ExitCode::kFail;
    if (!found.course.empty()) return ExitCode::kNotDeterministic;
    console.out << fmt::format(
        "{}: the same: {}{}{}; {}\n", file_, now.verdict, now.code.empty() ? "" : " ", now.code,
        found.course_compared ? "the event hash too"
                              : "the event hash is of another commit or build, not compared");
    return ExitCode::kPass;
  }

  std::string file_;
  bool record_ = false;
  std::string mutant_;
  std::int64_t seed_ = 1;
};

}  // namespace

std::unique_ptr<Verb> make_replay() { return std::make_unique<ReplayVerb>(); }

}  // namespace reprise::cli
