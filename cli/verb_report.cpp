#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/arguments/report_argument.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/table.hpp"
#include "core/base/bytes.hpp"
#include "core/base/print.hpp"
#include "core/base/sha256.hpp"
#include "core/ports/store_path.hpp"
#include "driver/runs/run.hpp"
#include "reports/document.hpp"
#include "reports/gate/demand.hpp"
#include "reports/pages/pages.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

/// Returns what the lane's baseline demands besides its scenarios, one line each.
std::vector<std::string> demands_of(const reports::LaneFloor& floor) {
  std::vector<std::string> lines;
  const auto add = [&lines](std::uint64_t count, const std::string& noun, const std::string& more) {
    if (count > 0) lines.push_back(counted(count, noun) + more);
  };
  add(floor.runs_doubled, "scenario", " run twice");
  for (const auto& [name, cases] : floor.properties) {
    lines.push_back("property " + name + ": " + counted(cases, "case"));
  }
  const std::vector<std::string> mutants(floor.mutants.begin(), floor.mutants.end());
  add(mutants.size(), "mutant", " caught: " + join(mutants, ", "));
  add(floor.matrix.size(), "mutant",
      " caught in a matrix of " + counted(floor.matrix_scenarios, "scenario"));
  for (const auto& [space, pairs] : floor.exhaustive) {
    lines.push_back(counted(pairs, "pair") + " of layouts passed (" + space + ")");
  }
  add(floor.timelines, "random timeline",
      " searched, which reached " + counted(floor.marks.size(), "mark"));
  return lines;
}

void print_lane(reports::ReportLane lane, const reports::LaneFloor& floor, const Console& console) {
  const auto totals = totals_of(floor);
  console.out << fmt::format(
      "\nlane {}: commit {}, build {}, seed {}\n  {}, {} skipped, {} compared\n", name_of(lane),
      floor.project.commit.empty() ? "not known" : floor.project.commit,
      floor.project.build.empty() ? "not known" : floor.project.build, floor.seed,
      counted(totals.scenarios, "scenario"), with_commas(totals.skipped),
      counted(totals.elements, "element"));
  for (const auto& line : demands_of(floor)) console.out << "  " << line << '\n';
  console.out << '\n';
  Table table({{"scenario"},
               {"elements", Align::kRight},
               {"tensors and objects", Align::kRight},
               {"course"}});
  for (const auto& [name, one] : floor.scenarios) {
    if (one.skipped.empty()) {
      table.add(
          {name, with_commas(one.compared.elements), with_commas(one.compared.leaves), one.course});
    } else {
      table.add({name, "", "", "skipped: " + one.skipped});
    }
  }
  table.print(console);
}

/// Returns the baseline that the file holds; nothing if it holds something else.
std::optional<reports::Floors> baseline_in(const std::string& file) {
  const std::string text = report_text(file);
  try {
    const auto document = reports::parse_document(text, file);
    if (!document.contains("baseline_version")) return std::nullopt;
    return reports::parse_baseline(text, file);
  } catch (const reports::ReadError& error) {
    throw Error(Code::kTornFile, error.what());
  }
}

class ReportVerb final : public Verb {
 public:
  std::string_view name() const override { return "report"; }
  std::string_view summary() const override {
    return "Make a page and a summary of a report, or show a baseline";
  }
  std::string_view examples() const override {
    return "  reprise report build/report                  build/report/report.html and "
           "summary.md\n"
           "  reprise report build/report --out pages\n"
           "  reprise report build/report --annotate       also GitHub's ::error lines\n"
           "  reprise report build/report --history nights    say which problems are new\n"
           "  reprise report reports/baseline.json         print what an accepted run showed\n"
           "  cat build/report/summary.md >> \"$GITHUB_STEP_SUMMARY\"\n"
           "\nEvery --report DIR writes both beside report.json, so this is for a report from "
           "another\n"
           "machine or an older program. Exit codes: 0 written, whatever the verdict is; 2 if\n"
           "there is no report.json or it can't be read.\n";
  }
  void declare(Options& options) override {
    options
        .positional(directory_, "DIR",
                    "directory with a report.json; or the file of a baseline, which is printed")
        .text(out_, "--out", "DIR",
              "where to write report.html and summary.md; default: beside report.json")
        .flag(annotate_, "--annotate",
              "print the worst problems as annotations for GitHub, at most ten")
        .texts(history_, "--history", "REPORT",
               "an older report of the lane, or a folder of reports: marks problems as new, "
               "ongoing or rare, and lists what was resolved; may be given more than once");
  }

  ExitCode run(const Console& console) override {
    if (is_file()) return show_baseline(console);
    const auto [text, report] = read(console.err);
    const auto earlier = earlier_reports(report, console);
    const std::string& out = out_.empty() ? directory_ : out_;
    driver::write_pages(report, hex(sha256_of(as_bytes(text))), earlier, out);
    if (annotate_) {
      for (const auto& line : annotations_of(report, earlier)) console.out << line << '\n';
    }
    console.out << "page: " << out << "/report.html\nsummary: " << out << "/summary.md\n";
    return ExitCode::kPass;
  }

 private:
  bool is_file() const {
    const StoredPath stored = stored_path(directory_);
    const auto entry = stored.store->stat(stored.path);
    return entry && !entry->directory;
  }

  ExitCode show_baseline(const Console& console) const {
    const auto baseline = baseline_in(directory_);
    if (!baseline) {
      throw Error(
          Code::kUsage,
          "the file is not a baseline; for a report, name the directory that contains report.json",
          {.file = directory_});
    }
    if (!out_.empty() || annotate_ || !history_.empty()) {
      throw Error(Code::kUsage,
                  "a baseline is only printed: leave out --out, --annotate and --history",
                  {.file = directory_});
    }
    console.out << "baseline: " << directory_ << '\n';
    for (const auto& [lane, floor] : *baseline) print_lane(lane, floor, console);
    return ExitCode::kPass;
  }

  /// Reads the reports of --history. Leaves out those that did not start before this one, and says
  /// so; leaves out this one in silence.
  std::vector<reports::PastReport> earlier_reports(const reports::Report& report,
                                                   const Console& console) const {
    std::vector<reports::PastReport> earlier;
    for (const auto& name : reports_named(history_, "--history")) {
      std::error_code unknown;
      if (std::filesystem::equivalent(name, directory_, unknown)) continue;
      const auto submission = read_submission(name, console.err);
      if (!submission.report) throw unreadable_report(submission);
      if (submission.report->lane != report.lane) {
        throw Error(Code::kUsage,
                    "reports of two lanes are not comparable: " + name_of(report.lane) + " and " +
                        name_of(submission.report->lane),
                    {.file = name});
      }
      if (submission.report->started < report.started) {
        earlier.push_back(past_report_of(name, *submission.report));
      } else {
        console.err << "note: left out of the history, because it is not older: " << name << '\n';
      }
    }
    return earlier;
  }

  ReadReport read(std::ostream& err) const {
    try {
      return read_report(join_path(directory_, "report.json"), err);
    } catch (const reports::NewerError& error) {
      throw Error(Code::kUnsupported, error.what() + (": " + std::string(reports::kReadNewer)));
    } catch (const reports::ReadError& error) {
      throw Error(Code::kTornFile, error.what());
    }
  }

  std::string directory_;
  std::string out_;
  std::vector<std::string> history_;
  bool annotate_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_report() { return std::make_unique<ReportVerb>(); }

}  // namespace reprise::cli
