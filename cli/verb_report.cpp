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
              "print the worst problems as annotations for GitHub, at most ten");
  }

  ExitCode run(const Console& console) override {
    const auto [text, report] = read(console.err);
    const std::string& out = out_.empty() ? directory_ : out_;
    driver::write_pages(report, hex(sha256_of(as_bytes(text))), out);
    if (annotate_) {
      for (const auto& line : annotations_of(report)) console.out << line << '\n';
    }
    console.out << "page: " << out << "/report.html\nsummary: " << out << "/summary.md\n";
    return ExitCode::kPass;
  }

 private:
  ReadReport read(std::ostream& err) const {
    const StoredPath stored = stored_path(directory_);
    const auto entry = stored.store->stat(stored.path);
    if (entry && !entry->directory) {
      throw Error(Code::kUsage, "name the directory that holds report.json, not a file in it",
                  {.file = directory_});
    }
    try {
      return read_report(join_path(directory_, "report.json"), err);
    } catch (const reports::ReadError& error) {
      throw Error(Code::kTornFile, error.what());
    }
  }

  std::string directory_;
  std::string out_;
  bool annotate_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_report() { return std::make_unique<ReportVerb>(); }

}  // namespace reprise::cli
