#include <fmt/format.h>

#include <cstdlib>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/frame/verb.hpp"
#include "core/ports/whole_file.hpp"
#include "driver/language/catalogue.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/runs/replay.hpp"
#include "driver/runs/run.hpp"
#include "driver/yaml/yaml_map.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

constexpr std::uint64_t kSeed = 1;

class ReplayVerb final : public Verb {
 public:
  std::string_view name() const override { return "replay"; }
  std::string_view summary() const override {
    return "Run a scenario again and compare with the record in its file";
  }
  std::string_view examples() const override {
    return "  reprise replay scenarios/regress               each file in the folder\n"
           "  reprise replay scenarios/regress/one-writer-tp.yaml\n"
           "  reprise replay scenarios/regress --record      record what this program does with "
           "each\n"
           "  reprise replay found.yaml --record --mutant floor-vs-ceil-chunk\n";
  }
  void declare(Options& options) override {
    options.positional(paths_, "PATH", "scenario files or folders")
        .flag(record_, "--record", "write the 'recorded:' blocks instead of comparing with them")
        .text(mutant_, "--mutant", "NAME", "with --record: a historical defect to switch on")
        .number(seed_, "--seed", 0, "with --record: seed of the simulated scheduler");
  }

  ExitCode run(const Console& console) override {
    if (!record_ && !mutant_.empty()) throw Error(Code::kUsage, "--mutant belongs to --record");
    if (!record_ && seed_ >= 0) {
      throw Error(Code::kUsage, "--seed belongs to --record: a replay uses the seed of the record");
    }
    std::vector<driver::Scenario> scenarios;
    for (const auto& file : driver::find_scenarios(paths_)) {
      scenarios.push_back(driver::read_scenario(file));
      if (record_ || scenarios.back().recorded) continue;
      throw Error(Code::kUsage, "has no 'recorded:' block; 'reprise replay FILE --record' adds one",
                  {.file = file});
    }
    ExitCode worst = ExitCode::kPass;
    for (const auto& scenario : scenarios) {
      const ExitCode code = record_ ? record(scenario, console) : replay(scenario, console);
      if (worst != ExitCode::kFail && code != ExitCode::kPass) worst = code;
    }
    return worst;
  }

 private:
  static driver::Recorded run_once(const driver::Scenario& scenario, driver::LaneOptions options,
                                   const Console& console) {
    const char* python = std::getenv("REPRISE_PYTHON");
    options.python = python == nullptr ? "" : python;
    options.executable = console.executable;
    const auto lane = scenario.program ? driver::LaneKind::kProgram : driver::LaneKind::kSim;
    const auto result = driver::run_scenario(scenario, lane, options);
    return driver::record_of(result, options, build_info());
  }

  /// Returns the options for the new record: the options of the existing record, unless the command
  /// line overrides them.
  driver::LaneOptions options_to_record(const driver::Scenario& scenario) const {
    driver::LaneOptions options{.seed = kSeed};
    if (scenario.recorded) {
      options.seed = scenario.recorded->seed;
      options.mutant = scenario.recorded->mutant;
    }
    if (seed_ >= 0) options.seed = static_cast<std::uint64_t>(seed_);
    if (!mutant_.empty()) options.mutant = mutant_;
    return options;
  }

  /// Runs the scenario and stores the outcome in its file. The file is replaced in one step, so an
  /// interrupt leaves either the old text or the new text.
  ExitCode record(const driver::Scenario& scenario, const Console& console) const {
    const std::string& file = scenario.file;
    const driver::Recorded now = run_once(scenario, options_to_record(scenario), console);
    const std::string text = driver::with_record(driver::read_yaml_text(file), now);
    const StoredPath target = stored_path(file);
    write_atomically(*target.store, target.path, as_bytes(text));
    console.out << fmt::format("{}: recorded {}{}{}\n", file, now.verdict,
                               now.code.empty() ? "" : " ", now.code);
    return ExitCode::kPass;
  }

  static ExitCode replay(const driver::Scenario& scenario, const Console& console) {
    const std::string& file = scenario.file;
    const driver::Recorded& then = *scenario.recorded;
    const driver::Recorded now =
        run_once(scenario, {.seed = then.seed, .mutant = then.mutant}, console);
    const driver::ReplayFinding found = driver::compare_replay(then, now);
    for (const auto& sentence : found.outcome) console.out << file << ": " << sentence << '\n';
    if (!found.course.empty()) console.out << file << ": " << found.course << '\n';
    if (!found.outcome.empty()) return ExitCode::kFail;
    if (!found.course.empty()) return ExitCode::kNotDeterministic;
    console.out << fmt::format(
        "{}: the same: {}{}{}; {}\n", file, now.verdict, now.code.empty() ? "" : " ", now.code,
        found.course_compared
            ? "the event hash as well"
            : "the event hash was not compared, because it is from another commit or build");
    return ExitCode::kPass;
  }

  std::vector<std::string> paths_;
  bool record_ = false;
  std::string mutant_;
  std::int64_t seed_ = -1;  ///< -1 if not given
};

}  // namespace

std::unique_ptr<Verb> make_replay() { return std::make_unique<ReplayVerb>(); }

}  // namespace reprise::cli
