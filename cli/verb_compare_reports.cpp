#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

#include "cli/arguments/report_argument.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/table.hpp"
#include "core/base/print.hpp"
#include "reports/compare/history.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

constexpr std::size_t kNamesShown = 3;

double number_given(const std::string& text, const std::string& option) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ptr == end && read.ec == std::errc{} && std::isfinite(number) && number >= 0) {
    return number;
  }
  throw Error(Code::kUsage, option + " needs a number such as 1.5, not '" + text + "'");
}

class CompareReportsVerb final : public Verb {
 public:
  std::string_view name() const override { return "compare-reports"; }
  std::string_view summary() const override {
    return "Say what got worse or better between reports of a lane";
  }
  std::string_view examples() const override {
    return "  reprise compare-reports last-week/report build/report\n"
           "  reprise compare-reports OLD NEW --slower 2 --slower-seconds 5\n"
           "  reprise compare-reports nights/*        more than two: a history, ordered by their "
           "start\n"
           "  reprise compare-reports nights          the reports in the subfolders of a folder\n"
           "  reprise compare-reports OLD NEW --json | jq '.changes[] | select(.meaning == "
           "\"worse\")'\n"
           "\n"
           "Digests, event hashes and counts must be equal where commit, build and seed are and "
           "neither tree\n"
           "had changes; elsewhere others are information. A slower scenario is information if the "
           "machines differ.\n"
           "\n"
           "Exit codes: 0 nothing got worse, 1 something got worse (of a history: in the newest "
           "report,\n"
           "compared with any before it), 2 wrong usage or an unreadable report.\n";
  }
  void declare(Options& options) override {
    options
        .positional(reports_, "REPORT",
                    "report.json files or their directories, the older one first; or a folder of "
                    "reports, for a history")
        .text(ratio_, "--slower", "RATIO",
              "a scenario counts as slower if it takes more than RATIO times as long; default: 1.5")
        .text(seconds_, "--slower-seconds", "S", "... and more than S seconds longer; default: 1")
        .flag(json_, "--json", "print one JSON document");
  }

  ExitCode run(const Console& console) override {
    const auto named = reports_named(reports_);
    if (named.size() < 2) {
      throw Error(Code::kUsage,
                  "name two reports to compare; for a history, name more or a folder of reports");
    }
    const reports::SlowerLimits limits{.ratio = number_given(ratio_, "--slower"),
                                       .seconds = number_given(seconds_, "--slower-seconds")};
    auto submissions = read_all_reports(named, console);
    return named == reports_ && named.size() == 2
               ? compare_two(submissions, limits, console)
               : show_history(std::move(submissions), limits, console);
  }

 private:
  static std::vector<reports::Submission> read_all_reports(const std::vector<std::string>& named,
                                                           const Console& console) {
    std::vector<reports::Submission> submissions;
    for (const auto& argument : named) {
      submissions.push_back(read_submission(argument, console.err));
      const auto& report = submissions.back().report;
      if (!report) throw unreadable_report(submissions.back());
      const auto lane = submissions.front().report->lane;
      if (report->lane == lane) continue;
      throw Error(Code::kUsage,
                  "reports of two lanes are not comparable: " + name_of(lane) + " and " +
                      name_of(report->lane),
                  {.file = argument});
    }
    return submissions;
  }

  ExitCode compare_two(const std::vector<reports::Submission>& submissions,
                       const reports::SlowerLimits& limits, const Console& console) const {
    const auto comparison = compare_reports(*submissions[0].report, *submissions[1].report, limits);
    const ExitCode code = comparison.got_worse() ? ExitCode::kFail : ExitCode::kPass;
    if (json_) {
      console.out << to_json(comparison);
      return code;
    }
    print_reports(submissions, console);
    print_changes(comparison.changes, reports::Meaning::kWorse, console);
    print_changes(comparison.changes, reports::Meaning::kBetter, console);
    print_information(comparison.changes, console);
    if (comparison.slowdown != 1) {
      console.out << fmt::format(
          "\nnearly all scenarios are slower by a factor of {:.1f}, so the machine probably was, "
          "and each scenario is compared with that (a change that slows everything down equally "
          "looks the same)\n",
          comparison.slowdown);
    }
    console.out
        << (comparison.same_program
                ? "\nsame program and seed: digests, event hashes and counts must be equal\n"
                : "\ndifferent commit, build or seed, or a tree with changes: different digests "
                  "and event hashes are only information\n");
    print_conclusion(comparison.count(reports::Meaning::kWorse), console);
    return code;
  }

  ExitCode show_history(std::vector<reports::Submission> submissions,
                        const reports::SlowerLimits& limits, const Console& console) const {
    const auto history = history_of(std::move(submissions), limits);
    const ExitCode code = history.worse.empty() ? ExitCode::kPass : ExitCode::kFail;
    if (json_) {
      console.out << to_json(history);
      return code;
    }
    print_reports(history.reports, console);
    if (!history.strips.empty()) {
      console.out
          << "\noldest to newest: P passed, F failed, I inconclusive, N not run, . missing\n";
      Table table({{"scenario"}, {"strip"}});
      for (const auto& strip : history.strips) table.add({strip.scenario, strip.letters});
      table.print(console);
    }
    print_changes(history.worse, reports::Meaning::kWorse, console);
    console.out << '\n';
    print_conclusion(history.worse.size(), console);
    return code;
  }

  static void print_reports(const std::vector<reports::Submission>& submissions,
                            const Console& console) {
    Table table({{"report"}, {"started"}, {"seconds", Align::kRight}, {"commit"}, {"verdict"}});
    for (const auto& one : submissions) {
      const auto& report = one.report;
      table.add({one.file, report->started, fmt::format("{:.1f}", report->seconds),
                 report->project.commit.substr(0, 12) + (report->project.dirty ? "+" : ""),
                 name_of(report->verdict)});
    }
    table.print(console);
  }

  static void print_changes(const std::vector<reports::ReportChange>& changes,
                            reports::Meaning meaning, const Console& console) {
    Table table({{name_of(meaning)}, {"change"}, {"before"}, {"now"}});
    for (const auto& change : changes) {
      if (change.meaning != meaning) continue;
      table.add({change.subject, change.what, change.before, change.now});
    }
    if (table.empty()) return;
    console.out << '\n';
    table.print(console);
  }

  /// Prints one line for each kind of information.
  static void print_information(const std::vector<reports::ReportChange>& changes,
                                const Console& console) {
    std::map<std::string, std::vector<std::string>> subjects;
    for (const auto& change : changes) {
      if (change.meaning != reports::Meaning::kInformation) continue;
      subjects[change.what].push_back(change.subject);
    }
    if (!subjects.empty()) console.out << '\n';
    for (const auto& [what, names] : subjects) {
      console.out << fmt::format("information: {} ({}): {}\n", what, names.size(),
                                 join_first(names, kNamesShown));
    }
  }

  static void print_conclusion(std::size_t worse, const Console& console) {
    console.out << (worse == 0 ? "nothing got worse\n"
                               : fmt::format("{} got worse\n", with_commas(worse)));
  }

  std::vector<std::string> reports_;
  std::string ratio_ = "1.5";
  std::string seconds_ = "1";
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_compare_reports() { return std::make_unique<CompareReportsVerb>(); }

}  // namespace reprise::cli
