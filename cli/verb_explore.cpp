#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/evidence_verb.hpp"
#include "cli/frame/interrupts.hpp"
#include "cli/output/table.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "driver/explore/explore.hpp"
#include "driver/explore/finding.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/record/build_info.hpp"
#include "driver/runs/property.hpp"
#include "driver/runs/run.hpp"
#include "driver/runs/shrink_file.hpp"
#include "driver/yaml/text_file.hpp"
#include "reports/cause.hpp"
#include "reports/shards.hpp"
#include "reprise/error.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::cli {
namespace {

constexpr std::int64_t kRuns = 1000;
constexpr std::size_t kShrunkMost = 5;
constexpr std::size_t kShrinkTries = 300;

class ExploreVerb final : public EvidenceVerb {
 public:
  std::string_view name() const override { return "explore"; }
  bool is_subject() const override { return true; }
  std::string_view summary() const override {
    return "Search for failures in random timelines, branching where something new was seen";
  }
  std::string_view examples() const override {
    return "  reprise search explore --jobs 2              the timelines of this commit\n"
           "  reprise search explore --minutes 20 --report out   what is reached, and how fast\n"
           "  reprise search explore --minutes 20 --report out --since last-night\n"
           "  reprise search explore --seconds 90 --subject rerun --out found\n"
           "  reprise search explore --recipe 17/2:350:941  one timeline again\n"
           "  reprise search explore --mutant same-step-removed-first --runs 5000 --seed 1\n";
  }
  void declare(Options& options) override {
    options.number(seed_, "--seed", 0, "seed of the search; default: derived from the commit")
        .number(runs_, "--runs,--cases", 1,
                "number of timelines; default: 1000, or no limit with --minutes or --seconds")
        .number(minutes_, "--minutes", 1, "end the search after this many minutes")
        .number(seconds_, "--seconds", 1,
                "end the search after this many seconds; added to --minutes")
        .text(subject_, "--subject", "NAME",
              "search only in jobs of this subject: " + join(driver::timeline_subjects(), ", "))
        .text(out_, "--out", "DIR",
              "write shrunk failures there; default: the directory of --report")
        .text(
            shard_, "--shard", "I/N",
            "make shard I of N searches, each with a seed of its own and all --runs or --minutes, "
            "for several machines; 'reprise merge' adds up their reports")
        .flag(alone_, "--alone", "only use seeds; never branch")
        .text(mutant_, "--mutant", "NAME",
              "switch on a historical defect; the search ends with the first failure")
        .text(recipe_, "--recipe", "R", "run this one timeline")
        .text(since_, "--since", "DIR", "compare with the findings of the report there");
    declare_evidence(options);
  }

  ExitCode run(const Console& console) override {
    require_sense();
    if (!recipe_.empty()) return replay(console);
    const Interrupts interrupts;
    require_report(mutant_);
    if (!out_.empty()) driver::require_writable(out_);
    const auto earlier = findings_since();
    driver::ExploreResult result = search(console);
    auto& findings = result.coverage.findings;
    const auto resolved =
        driver::resolved_since(earlier, findings, [&](const reports::SearchFinding& before) {
          return !result.interrupted && passes_now(before);
        });
    findings.insert(findings.end(), resolved.begin(), resolved.end());
    write(result);  // before the findings are shrunk, which takes time
    print(result, console);
    if (!result.interrupted && !place_of_failures().empty() && keep_failures(findings, console)) {
      write(result);
    }
    return exit_code(result);
  }

 private:
  const std::string& place_of_failures() const { return out_.empty() ? report_ : out_; }

  void require_sense() const {
    part_of_work(shard_);
    const auto subjects = driver::timeline_subjects();
    if (!subject_.empty() && std::ranges::find(subjects, subject_) == subjects.end()) {
      throw Error(Code::kUsage, fmt::format("there is no subject '{}'; the subjects are: {}",
                                            subject_, join(subjects, ", ")));
    }
    if (!subject_.empty() && !report_.empty()) {
      throw Error(Code::kUsage,
                  "a report covers all subjects: leave out --report or --subject; --out keeps the "
                  "failures of a search without a report");
    }
    if (!mutant_.empty()) sim::mutant_named(mutant_);
    const bool search_only = !report_.empty() || !since_.empty() || !out_.empty() ||
                             !subject_.empty() || !shard_.empty();
    if (!recipe_.empty() && search_only) {
      throw Error(Code::kUsage,
                  "--recipe runs one timeline: leave out --report, --since, --out, --subject and "
                  "--shard");
    }
  }

  /// Returns the seed of all shards.
  std::uint64_t seed() const {
    return seed_ >= 0 ? static_cast<std::uint64_t>(seed_)
                      : driver::seed_of_commit(build_info().commit);
  }

  /// True if the report is written: unless the search was interrupted before it found a failure.
  bool is_written(const driver::ExploreResult& result) const {
    return !report_.empty() && (!result.interrupted || has_findings(result.coverage));
  }

  void write(const driver::ExploreResult& result) const {
    if (!is_written(result)) return;
    const PartOfWork part = part_of_work(shard_);
    add_to_report([&](reports::Report& report) {
      report.coverage = result.coverage;
      put_shard(report,
                {reports::kTimelines, part.number, part.of, is_timed() ? 0 : part.of * runs()});
    });
  }

  static bool passes_now(const reports::SearchFinding& before) {
    const auto seen = driver::run_timeline(driver::parse_recipe(before.recipe), "");
    return seen.verdict == reports::Verdict::kPass;
  }

  ExitCode replay(const Console& console) const {
    const driver::Recipe recipe = driver::parse_recipe(recipe_);
    for (const auto& split : recipe.splits) {
      if (split.life < driver::kTimelineLives) continue;
      throw Error(Code::kUsage,
                  fmt::format("recipe '{}': a timeline has {} lives, so there is no number {}",
                              recipe_, driver::kTimelineLives, split.life));
    }
    const auto seen = driver::run_timeline(recipe, mutant_);
    console.out << to_yaml(driver::scenario_of(recipe));
    for (const auto& mark : seen.marks) {
      console.out << fmt::format("life {}: {}\n", mark.life, mark.name);
    }
    for (const auto& tuple : seen.tuples) {
      console.out << fmt::format("life {}: {}\n", tuple.life, tuple.name);
    }
    console.out << fmt::format("{}{}{}\n", reports::name_of(seen.verdict),
                               seen.code.empty() ? "" : ": " + seen.code,
                               seen.reason.empty() ? "" : ": " + seen.reason);
    if (seen.verdict == reports::Verdict::kFail) return ExitCode::kFail;
    return seen.verdict == reports::Verdict::kPass && !seen.unasked ? ExitCode::kPass
                                                                    : ExitCode::kInconclusive;
  }

  std::vector<reports::SearchFinding> findings_since() const {
    if (since_.empty()) return {};
    const std::string file = (std::filesystem::path(since_) / "report.json").string();
    if (!std::filesystem::is_regular_file(file)) {
      throw Error(Code::kUsage, "--since names a directory without a report", {.file = file});
    }
    const reports::Report before = reports::parse_report(driver::text_of(file), file);
    if (before.coverage) return before.coverage->findings;
    throw Error(Code::kUsage, "the report has no coverage to compare with", {.file = file});
  }

  /// Returns the limit of time; 0 if none was given.
  std::int64_t seconds_given() const {
    constexpr std::int64_t kYear = std::int64_t{366} * 24 * 60;
    if (minutes_ > kYear || seconds_ > kYear * 60) {
      throw Error(Code::kUsage, "a search of more than a year");
    }
    return minutes_ * 60 + seconds_;
  }

  bool is_timed() const { return seconds_given() > 0 && runs_ == 0; }
  std::uint64_t runs() const { return static_cast<std::uint64_t>(runs_ > 0 ? runs_ : kRuns); }

  driver::ExploreResult search(const Console& console) {
    ProgressLine line = progress_line(console);
    driver::ExploreRequest request{.seed = seed() + part_of_work(shard_).number - 1};
    const std::int64_t seconds_max = seconds_given();
    const bool timed = is_timed();
    request.runs_max = timed ? UINT64_MAX : runs();
    request.seconds_max = static_cast<double>(seconds_max);
    request.jobs = jobs();
    request.alone = alone_;
    request.mutant = mutant_;
    request.subject = subject_;
    request.first_only = !mutant_.empty();
    request.interrupted = Interrupts::came;
    request.progress = [&](std::uint64_t runs, double seconds) {
      const auto second = static_cast<std::uint64_t>(seconds);
      const std::string what = with_commas(runs) + " timelines";
      if (timed) {
        line.advance(what, second, static_cast<std::uint64_t>(request.seconds_max));
      } else {
        line.advance(what, runs, request.runs_max);
      }
    };
    return driver::explore(request);
  }

  /// Shrinks the first new findings to scenario files. Returns true if any was written. Some
  /// failures need their schedule, which a scenario file can't describe; only their recipe shows
  /// them.
  bool keep_failures(std::vector<reports::SearchFinding>& findings, const Console& console) const {
    bool any = false;
    std::size_t tried = 0;
    for (auto& finding : findings) {
      if (Interrupts::came()) break;
      if (finding.status == "resolved" || !finding.file.empty() || tried++ == kShrunkMost) continue;
      try {
        finding.file = shrunk_file_of(finding);
      } catch (const Error& error) {
        console.err << fmt::format("not shrunk: {}: {}\n", finding.signature, error.what());
      }
      if (finding.file.empty()) continue;
      any = true;
      console.out << fmt::format("shrunk: {}\n  to {}\n", finding.signature, finding.file);
    }
    return any;
  }

  /// Returns the file; empty if the scenario alone does not show the failure.
  std::string shrunk_file_of(const reports::SearchFinding& finding) const {
    const driver::Recipe recipe = driver::parse_recipe(finding.recipe);
    const auto shrunk = driver::shrink_file(driver::scenario_of(recipe),
                                            {.seed = recipe.seed, .mutant = mutant_}, kShrinkTries);
    const auto& first = shrunk.first;
    if (!shrunk.small || reports::signature_of(first.code, first.reason) != finding.signature) {
      return "";
    }
    const std::string file = "explored-" + hex(hash_of(finding.signature)).substr(0, 8) + ".yaml";
    return driver::write_scenario(*shrunk.small, place_of_failures(), file);
  }

  void print(const driver::ExploreResult& result, const Console& console) const {
    const auto& coverage = result.coverage;
    auto& out = console.out;
    if (!quiet_) print_marks(coverage, console);
    out << "new behaviour: ";
    for (const auto& point : coverage.curve) {
      out << fmt::format("{}{} runs {}+{}", &point == coverage.curve.data() ? "" : ", ",
                         with_commas(point.runs), with_commas(point.marks),
                         with_commas(point.tuples));
    }
    out << " (marks + tuples of place, fault, outcome)\n";
    if (result.by_priority > 0) {
      out << fmt::format(
          "{} timelines with schedules by priority: depth 3, at most {} fibers and {} decisions in "
          "a "
          "life, so each finds such an order among the first {} decisions of a life with a "
          "probability of at least {:.1e}\n",
          with_commas(result.by_priority), result.largest.fibers, result.largest.decisions,
          sim::SchedulePlan::kHorizon, driver::priority_bound(result.largest));
    }
    for (const auto& finding : coverage.findings) print_finding(finding, console);
    if (result.interrupted) {
      out << "interrupted: the search is incomplete\n";
      if (!is_written(result)) out << left_as_it_was(report_);
      if (is_written(result)) out << report_ << " has the failures found so far\n";
    }
    if (!mutant_.empty()) {
      out << fmt::format("{} of {} timelines called {}\n", with_commas(result.asked),
                         with_commas(coverage.runs), mutant_);
    }
    out << fmt::format(
        "seed {}: {} timelines, {} of them branches; {} of {} marks reached, {} tuples; {} "
        "inconclusive; {:.1f} s\n",
        coverage.seed, with_commas(coverage.runs), with_commas(coverage.branches),
        coverage.marks.size() - unreached(coverage).size(), coverage.marks.size(), result.tuples,
        with_commas(coverage.inconclusive), result.seconds);
  }

  static void print_marks(const reports::Coverage& coverage, const Console& console) {
    Table table({{"mark"}, {"timelines", Align::kRight}, {""}});
    for (const auto& mark : coverage.marks) {
      const char* note = mark.count == 0                    ? "never reached"
                         : mark.count < reports::kRareBelow ? "rare"
                                                            : "";
      table.add({mark.name, with_commas(mark.count), note});
    }
    table.print(console);
  }

  void print_finding(const reports::SearchFinding& finding, const Console& console) const {
    if (finding.status == "resolved") {
      console.out << fmt::format("resolved: {}\n", finding.signature);
      return;
    }
    console.out << fmt::format(
        "{}: {}: {}\n  in {} timelines, first in number {}; again: reprise search explore --recipe "
        "{}{}{}\n",
        finding.status, finding.code, finding.reason, with_commas(finding.count),
        with_commas(finding.at_run), finding.recipe, mutant_.empty() ? "" : " --mutant " + mutant_,
        finding.file.empty() ? "" : "\n  shrunk to " + finding.file);
  }

  /// A mark that was never reached does not make a short search inconclusive; it does in a report.
  ExitCode exit_code(const driver::ExploreResult& result) const {
    if (has_findings(result.coverage)) return ExitCode::kFail;
    const bool vacuous = result.coverage.runs == 0 || result.coverage.inconclusive > 0 ||
                         (!mutant_.empty() && result.asked == 0);
    const bool judged = report_.empty() || flaws_of(result.coverage).empty();
    return result.interrupted || vacuous || !judged ? ExitCode::kInconclusive : ExitCode::kPass;
  }

  std::int64_t seed_ = -1;  ///< -1 if not given
  std::int64_t runs_ = 0;   ///< 0 if not given
  std::int64_t minutes_ = 0;
  std::int64_t seconds_ = 0;
  bool alone_ = false;
  std::string mutant_;
  std::string recipe_;
  std::string subject_;
  std::string shard_;
  std::string out_;
  std::string since_;
};

}  // namespace

std::unique_ptr<Verb> make_explore() { return std::make_unique<ExploreVerb>(); }

}  // namespace reprise::cli
