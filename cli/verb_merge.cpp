#include <fmt/format.h>

#include <vector>

#include "cli/arguments/report_argument.hpp"
#include "cli/frame/verb.hpp"
#include "core/base/print.hpp"
#include "driver/runs/run.hpp"
#include "reports/shards.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

class MergeVerb final : public Verb {
 public:
  std::string_view name() const override { return "merge"; }
  std::string_view summary() const override {
    return "Join the reports of several machines into one for the gate";
  }
  std::string_view examples() const override {
    return "  reprise merge shard-1 shard-2 shard-3 shard-4 --report out\n"
           "  reprise merge artifacts --report out      all reports in the folders below it\n"
           "  reprise merge artifacts --report out && reprise gate out --baseline baseline.json\n";
  }
  void declare(Options& options) override {
    options
        .positional(reports_, "REPORT",
                    "a report.json, a folder with one, or a folder of such folders")
        .text(report_, "--report", "DIR",
              "write report.json, junit.xml, report.html and summary.md there");
  }

  ExitCode run(const Console& console) override {
    if (report_.empty()) throw Error(Code::kUsage, "say with --report DIR where the report goes");
    driver::require_writable(report_);
    const auto files = reports_named(reports_);
    std::vector<reports::Report> read;
    for (const auto& file : files) read.push_back(read_report(file, console.err).report);
    std::vector<reports::NamedReport> named;
    for (std::size_t i = 0; i < files.size(); ++i) named.push_back({files[i], &read[i]});
    const reports::Report all = merged(named);
    const std::string digest = driver::write_report(all, report_);
    console.out << fmt::format(
        "{}: {} of {}, {}, {}\nreport: {}/report.json\nsha256: {}\n", reports::name_of(all.verdict),
        counted(all.scenarios.size(), "scenario"), counted(files.size(), "report"),
        std::to_string(all.properties.size()) + " properties",
        counted(all.mutants.size(), "mutant"), report_, digest);
    switch (all.verdict) {
      case reports::Verdict::kPass:
        return ExitCode::kPass;
      case reports::Verdict::kFail:
        return ExitCode::kFail;
      default:
        return ExitCode::kInconclusive;
    }
  }

 private:
  std::vector<std::string> reports_;
  std::string report_;
};

}  // namespace

std::unique_ptr<Verb> make_merge() { return std::make_unique<MergeVerb>(); }

}  // namespace reprise::cli
