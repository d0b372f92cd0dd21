#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/evidence_verb.hpp"
#include "cli/frame/interrupts.hpp"
#include "cli/output/table.hpp"
#include "cli/output/text_output.hpp"
#include "core/base/print.hpp"
#include "driver/runs/mutant_matrix.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

constexpr std::size_t kReasonShown = 90;

std::string clipped(const std::string& text) {
  return text.size() <= kReasonShown ? text : text.substr(0, kReasonShown - 3) + "...";
}

class MutantsVerb final : public EvidenceVerb {
 public:
  std::string_view name() const override { return "mutants"; }
  std::string_view summary() const override {
    return "Switch on historical defects and check that they are caught";
  }
  std::string_view examples() const override {
    return "  reprise mutants                        each against the scenarios that declare it\n"
           "  reprise mutants --rows 1 --jobs 2       in one row of each table: a sample\n"
           "  reprise mutants --list\n"
           "  reprise mutants --only floor-vs-ceil-chunk\n"
           "  reprise mutants scenarios/placements --json mutants.json --jobs 2\n"
           "  reprise mutants --matrix --jobs 2       each in one row of each scenario file\n"
           "  reprise mutants --matrix --whole        each in the whole catalogue; takes hours\n"
           "  reprise mutants --matrix --page build/matrix.md --report build/report\n";
  }
  void declare(Options& options) override {
    options.optional_positional(paths_, "PATH", "scenario files or folders; default: 'scenarios'")
        .flag(list_, "--list",
              "list all mutants: the defect, what it needs, how it is caught, and its seam")
        .text(only_, "--only", "NAME", "run only this mutant")
        .text(shard_, "--shard", "I/N",
              "run only shard I of N of the mutants, for several machines; 'reprise merge' joins "
              "their reports")
        .flag(matrix_, "--matrix",
              "run every mutant against every scenario, whether or not the scenario declares it; "
              "without --whole, against one row of each file, drawn by --seed")
        .flag(whole_, "--whole", "with --matrix: use all rows of all files")
        .text(page_, "--page", "FILE", "with --matrix: write the page with all tables there")
        .text(json_, "--json", "FILE", "write the results to this file")
        .number(seed_, "--seed", 0, "seed of the simulated scheduler, of --rows and random cases")
        .number(rows_, "--rows", 0, "use at most N rows of each table, drawn by the seed; 0: all")
        .number(cases_, "--property-cases", 0,
                "number of random cases of the properties continuity and survives in which to try "
                "each mutant, besides its scenarios; default: 4; 0: none");
    declare_evidence(options);
  }

  ExitCode run(const Console& console) override {
    require_text_place(page_, "the page");
    require_text_place(json_, "the list of results");
    if (!matrix_ && (whole_ || !page_.empty())) {
      throw Error(Code::kUsage, "--whole and --page belong to --matrix");
    }
    if (matrix_ && rows_ > 0) {
      throw Error(Code::kUsage, "--rows is not for --matrix, which takes one row of each file");
    }
    if (whole_ && !paths_.empty()) {
      throw Error(Code::kUsage, "--whole runs the whole catalogue: leave out the scenario files");
    }
    if (matrix_ && (list_ || !json_.empty())) {
      throw Error(Code::kUsage,
                  "--matrix is a separate run that writes --page and --report; leave out --list "
                  "and --json");
    }
    if (!shard_.empty() && (matrix_ || list_ || !only_.empty())) {
      throw Error(Code::kUsage,
                  "--shard shares all mutants: leave out --matrix, --list and --only");
    }
    if (list_) return list(console);
    const Interrupts interrupts;
    require_report();
    return matrix_ ? run_matrix(console) : run_all(console);
  }

 private:
  ExitCode list(const Console& console) const {
    if (!only_.empty()) sim::mutant_named(only_);
    for (const auto& mutant : sim::mutants()) {
      if (!only_.empty() && mutant.name != only_) continue;
      console.out << fmt::format("{}\n  {}\n  needs: {}\n  caught as: {}\n  seam: {}\n\n",
                                 mutant.name, mutant.defect, mutant.needs,
                                 join(mutant.caught_as, ", "), mutant.seam);
    }
    return ExitCode::kPass;
  }

  /// Calls run_mutants or run_matrix.
  template <class Runs>
  auto run_with_progress(Runs runs, const Console& console) {
    driver::MutantRequest request;
    request.interrupted = Interrupts::came;
    request.selection.paths = paths_;
    if (paths_.empty()) request.selection.paths.emplace_back("scenarios");
    request.selection.seed = request.options.seed = static_cast<std::uint64_t>(seed_);
    request.selection.rows_max = static_cast<std::size_t>(rows_);
    request.whole = whole_;
    request.only = only_;
    const PartOfWork part = part_of_work(shard_);
    request.shard = part.number;
    request.shards = part.of;
    request.options.executable = console.executable;  // some scenarios start this program again
    request.jobs = jobs();
    request.property_cases = static_cast<std::uint64_t>(cases_);
    ProgressLine line = progress_line(console);
    return runs(request, [&line](std::size_t done, std::size_t total, const std::string& what) {
      line.advance(what, done, total);
    });
  }

  ExitCode run_all(const Console& console) {
    auto outcomes = run_with_progress(driver::run_mutants, console);
    // If the command line names scenario files, only the mutants that these files declare are
    // tried, and all other mutants are dropped here. Without file names, all mutants are kept: the
    // catalogue of scenarios is required to catch every mutant.
    if (!paths_.empty() && only_.empty()) {
      std::erase_if(outcomes,
                    [](const auto& outcome) { return outcome.verdict() == "not declared"; });
    }
    print(console, outcomes);
    print_properties(console, outcomes);
    const ExitCode code = conclude(console, outcomes);
    if (is_whole(outcomes)) {
      write(outcomes);
    } else {
      console.out << left_as_it_was(json_) << left_as_it_was(report_);
    }
    return code;
  }

  /// True if no interruption kept a mutant from being tried.
  static bool is_whole(const std::vector<driver::MutantOutcome>& outcomes) {
    return std::all_of(outcomes.begin(), outcomes.end(), [](const auto& outcome) {
      return outcome.untried_scenarios == 0 && outcome.untried_properties == 0;
    });
  }

  ExitCode run_matrix(const Console& console) {
    const driver::MatrixRun made = run_with_progress(driver::run_matrix, console);
    const reports::Matrix& matrix = made.matrix;
    print_matrix(console, matrix);
    if (made.untried > 0) {
      console.out << fmt::format(
          "interrupted: left out, because not tried with every mutant: {}\n{}{}",
          counted(made.untried, "scenario"), left_as_it_was(page_), left_as_it_was(report_));
      return ExitCode::kInconclusive;
    }
    write_matrix(console, matrix);
    const bool judged = failed_without_mutant(matrix).empty();
    const bool all = matrix.caught() == matrix.rows.size() && !matrix.scenarios.empty() && judged;
    if (all && (report_.empty() || flaws_of(matrix).empty())) return ExitCode::kPass;
    return has_survivor(matrix) ? ExitCode::kFail : ExitCode::kInconclusive;
  }

  static std::string verdict_of(const reports::MatrixRow& row) {
    if (row.is_caught()) return "caught";
    return row.is_unreached() ? "not reached" : "survived";
  }

  static void print_matrix(const Console& console, const reports::Matrix& matrix) {
    using reports::Cell;
    Table table({{"mutant"},
                 {"verdict"},
                 {"caught"},
                 {"passed"},
                 {"not called"},
                 {"not asked"},
                 {"broke down"}});
    for (const auto& row : matrix.rows) {
      table.add({row.mutant, verdict_of(row), std::to_string(row.count(Cell::kCaught)),
                 std::to_string(row.count(Cell::kPassed)),
                 std::to_string(row.count(Cell::kNotCalled)),
                 std::to_string(row.count(Cell::kNotAsked)),
                 std::to_string(row.count(Cell::kBrokeDown))});
    }
    table.print(console);
    for (const auto& [code, worth] : worth_of_codes(matrix)) {
      if (worth.alone.empty()) continue;
      console.out << fmt::format("\nfound only by {}: {}\n", code, join(worth.alone, ", "));
    }
    for (const auto& [mutant, scenario] : with_one_killer(matrix)) {
      console.out << fmt::format("\nonly {} catches {}\n", scenario, mutant);
    }
    for (const auto& [scenario, reason] : matrix.left_out) {
      console.out << fmt::format("\nleft out: {}: {}\n", scenario, reason);
    }
    console.out << fmt::format(
        "\n{} of {} mutants caught in {} scenarios; {} of these catch nothing that another does "
        "not, and {} catch nothing\n",
        matrix.caught(), matrix.rows.size(), matrix.scenarios.size(),
        catching_nothing_alone(matrix).size(), catching_nothing(matrix).size());
  }

  void write_matrix(const Console& console, const reports::Matrix& matrix) const {
    if (!page_.empty()) {
      write_text(page_, to_page(matrix), "the page");
      console.out << "page: " << page_ << '\n';
    }
    add_to_report([&matrix](reports::Report& report) { report.matrix = matrix; });
  }

  static std::string word_of(const driver::Trial& trial) {
    return trial.caught ? "caught" : trial.asked ? "survived" : "not asked";
  }

  /// Adds the mutant's trials to the table. Adjacent trials share a line if they come from the same
  /// scenario file and caught the mutant with the same code.
  static void add_trials(const std::string& name, const std::vector<driver::Trial>& trials,
                         Table& table) {
    const auto file = [](const driver::Trial& trial) {
      return trial.scenario.substr(0, trial.scenario.find('['));
    };
    for (std::size_t begin = 0; begin < trials.size();) {
      const auto& first = trials[begin];
      std::size_t end = begin + 1;
      while (first.caught && end < trials.size() && trials[end].caught &&
             trials[end].code == first.code && file(trials[end]) == file(first)) {
        ++end;
      }
      const std::string where =
          end - begin > 1 ? fmt::format("{} ({} rows)", file(first), end - begin) : first.scenario;
      table.add({name, word_of(first), where, first.code, clipped(first.reason)});
      begin = end;
    }
  }

  static void add_properties(const driver::MutantOutcome& outcome, Table& table) {
    for (const auto& trial : outcome.properties) {
      if (!trial.caught) continue;
      table.add({std::string(outcome.mutant->name), "caught",
                 "property " + trial.property + ", " + trial.caught->scenario, trial.caught->code,
                 clipped(trial.caught->reason)});
    }
  }

  /// Prints the mutants that no random case caught. Only scenarios can detect these.
  static void print_properties(const Console& console,
                               const std::vector<driver::MutantOutcome>& outcomes) {
    std::size_t tried = 0;
    std::vector<std::string> alone;
    for (const auto& outcome : outcomes) {
      if (outcome.properties.empty()) continue;
      ++tried;
      std::uint64_t asked = 0;
      bool caught = false;
      for (const auto& trial : outcome.properties) {
        asked += trial.asked;
        caught = caught || trial.caught;
      }
      if (caught) continue;
      alone.push_back(fmt::format(
          "{} ({})", outcome.mutant->name,
          asked == 0 ? "no case called its seam" : fmt::format("{} called its seam", asked)));
    }
    if (tried == 0) {
      console.out << "\nproperties: no random case was run; only scenarios were\n";
      return;
    }
    console.out << fmt::format(
        "\nproperties: random cases caught {} of {} mutants{}\n", tried - alone.size(), tried,
        alone.empty() ? "" : "; caught only by scenarios: " + join(alone, ", "));
  }

  static void print(const Console& console, const std::vector<driver::MutantOutcome>& outcomes) {
    Table table({{"mutant"}, {"verdict"}, {"scenario"}, {"code"}, {"reason"}});
    for (const auto& outcome : outcomes) {
      const std::string name(outcome.mutant->name);
      if (outcome.verdict() == "not declared") {
        table.add({name, std::string(outcome.verdict()), "", "",
                   clipped("no scenario names it under 'caught'; it needs " +
                           std::string(outcome.mutant->needs))});
      }
      add_trials(name, outcome.trials, table);
      add_properties(outcome, table);
    }
    table.print(console);
    for (const auto& outcome : outcomes) {
      for (const auto& trial : outcome.trials) {
        if (trial.caught) continue;
        console.out << fmt::format("\n{} {} {}: {}\n", outcome.mutant->name,
                                   trial.asked ? "survived" : "was not called in", trial.scenario,
                                   trial.reason);
      }
    }
  }

  static ExitCode conclude(const Console& console,
                           const std::vector<driver::MutantOutcome>& outcomes) {
    const auto caught = static_cast<std::size_t>(std::count_if(
        outcomes.begin(), outcomes.end(), [](const auto& outcome) { return outcome.caught(); }));
    console.out << fmt::format("\n{} of {} mutants caught\n", caught, outcomes.size());
    const bool whole = is_whole(outcomes);
    if (!whole) {
      const auto lacking = [&outcomes](std::size_t driver::MutantOutcome::*untried) {
        return std::count_if(outcomes.begin(), outcomes.end(),
                             [untried](const auto& outcome) { return outcome.*untried > 0; });
      };
      console.out << fmt::format(
          "interrupted: {} of {} mutants were not tried in every scenario that declares them, and "
          "{} not in every random case\n",
          lacking(&driver::MutantOutcome::untried_scenarios), outcomes.size(),
          lacking(&driver::MutantOutcome::untried_properties));
    } else if (caught == 0) {
      console.out
          << "VALIDATOR_VACUOUS: no mutant was caught, so passing scenarios prove nothing\n";
    }
    if (caught == outcomes.size() && caught > 0) {
      return whole ? ExitCode::kPass : ExitCode::kInconclusive;
    }
    const bool unasked =
        !outcomes.empty() && std::all_of(outcomes.begin(), outcomes.end(), [](const auto& outcome) {
          return outcome.caught() || outcome.inconclusive();
        });
    return unasked ? ExitCode::kInconclusive : ExitCode::kFail;
  }

  void write(const std::vector<driver::MutantOutcome>& outcomes) const {
    if (!json_.empty()) write_json(outcomes);
    const PartOfWork part = part_of_work(shard_);
    add_to_report([&](reports::Report& report) {
      report.mutants = driver::results_of(outcomes);
      put_shard(report, {"mutants", part.number, part.of, sim::mutants().size()});
    });
  }

  static nlohmann::json properties_of(const driver::MutantOutcome& outcome) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& trial : outcome.properties) {
      all.push_back({{"property", trial.property},
                     {"cases", trial.cases},
                     {"asked", trial.asked},
                     {"caught", trial.caught.has_value()},
                     {"case", trial.caught ? trial.caught->scenario : ""},
                     {"code", trial.caught ? trial.caught->code : ""},
                     {"reason", trial.caught ? trial.caught->reason : ""}});
    }
    return all;
  }

  void write_json(const std::vector<driver::MutantOutcome>& outcomes) const {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& outcome : outcomes) {
      nlohmann::json trials = nlohmann::json::array();
      for (const auto& trial : outcome.trials) {
        trials.push_back({{"scenario", trial.scenario},
                          {"caught", trial.caught},
                          {"asked", trial.asked},
                          {"code", trial.code},
                          {"reason", trial.reason}});
      }
      all.push_back({{"name", outcome.mutant->name},
                     {"defect", outcome.mutant->defect},
                     {"seam", outcome.mutant->seam},
                     {"caught", outcome.caught()},
                     {"properties", properties_of(outcome)},
                     {"trials", trials}});
    }
    const auto text = nlohmann::json{{"mutants", all}}.dump(
        2, ' ', false, nlohmann::json::error_handler_t::replace);
    write_text(json_, text + "\n", "the list of results");
  }

  std::vector<std::string> paths_;
  bool list_ = false;
  bool matrix_ = false;
  bool whole_ = false;
  std::string page_;
  std::string only_;
  std::string shard_;
  std::string json_;
  std::int64_t seed_ = 1;
  std::int64_t rows_ = 0;
  std::int64_t cases_ = 4;
};

}  // namespace

std::unique_ptr<Verb> make_mutants() { return std::make_unique<MutantsVerb>(); }

}  // namespace reprise::cli
