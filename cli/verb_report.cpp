#include <filesystem>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/arguments/report_argument.hpp"
#include "cli/verb.hpp"
#include "core/base/bytes.hpp"
#include "core/base/sha256.hpp"
#include "core/ports/store_path.hpp"
#include "driver/runs/run.hpp"
#include "reports/pages/pages.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

class ReportVerb final : public Verb {
 public:
  std::string_view name() const override { return "report"; }
  std::string_view summary() const override { return "Make a page and a summary of a report"; }
  std::string_view examples() const override {
    return "  reprise report build/report                  build/report/report.html and "
           "summary.md\n"
           "  reprise report build/report --out pages\n"
           "  reprise report build/report --annotate       also GitHub's ::error lines\n"
           "  reprise report build/report --history nights    says which problems are new\n"
           "  cat build/report/summary.md >> \"$GITHUB_STEP_SUMMARY\"\n"
           "\n"
           "Every --report DIR writes both beside report.json, so this is for a report of another\n"
           "machine or of an older program. Exit codes: 0 written, whatever the verdict is; 2 if\n"
           "there is no report.json or it can't be read.\n";
  }
  void declare(Options& options) override {
    options.positional(directory_, "DIR", "directory with a report.json")
        .text(out_, "--out", "DIR", "where report.html and summary.md are written; default: there")
        .flag(annotate_, "--annotate",
              "print the worst problems as annotations for GitHub, at most ten")
        .texts(history_, "--history", "REPORT",
               "an older report of the lane, or a folder of such: marks problems as new, ongoing "
               "or rare, and lists what was resolved; may be given more than once");
  }

  ExitCode run(const Console& console) override {
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
    const StoredPath stored = stored_path(directory_);
    const auto entry = stored.store->stat(stored.path);
    if (entry && !entry->directory) {
      throw Error(Code::kUsage, "name the directory that holds report.json, not a file in it",
                  {.file = directory_});
    }
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
