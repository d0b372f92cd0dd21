#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/adapters/posix/posix_clock.hpp"
#include "core/base/print.hpp"
#include "core/engine/verify.hpp"
#include "scenarios/cli/checkpoint_argument.hpp"
#include "scenarios/cli/files_report.hpp"
#include "scenarios/cli/json_output.hpp"
#include "scenarios/cli/progress_line.hpp"
#include "scenarios/cli/verb.hpp"

namespace reprise::cli {
namespace {

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", with_commas(count), noun, count == 1 ? "" : "s");
}

/// A file may not be opened, or the disk fails: nothing can be said of what it holds.
bool unreadable(const VerifyReport& report) {
  return std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::kError && finding.code == Code::kIo;
  });
}

std::string verdict_line(const VerifyReport& report) {
  const auto errors = counted(count_of(report.findings, Severity::kError), "error");
  const auto warnings = counted(count_of(report.findings, Severity::kWarning), "warning");
  if (!report.location) return fmt::format("damaged: can't be read, {}", errors);
  const char* verdict = unreadable(report) ? "unreadable"
                        : !report.whole()  ? "damaged"
                        : report.vacuous() ? "empty"
                                           : "whole";
  return fmt::format("{}: {}, {}, {}, {}, {}", verdict, counted(report.tensors, "tensor"),
                     counted(report.elements, "element"), counted(report.objects, "object"), errors,
                     warnings);
}

class VerifyVerb final : public Verb {
 public:
  std::string_view name() const override { return "verify"; }
  std::string_view summary() const override { return "Is a checkpoint whole?"; }
  std::string_view examples() const override {
    return "  reprise verify runs/llm                  the checkpoint that the tracker names\n"
           "  reprise verify runs/llm/iter_*           several; the worst decides the exit code\n"
           "  reprise verify --no-payload ckpt         names, sizes and cover alone: fast\n"
           "  reprise verify mimo/iter_0000003         also: which module's metadata is missing\n"
           "  reprise verify --json ckpt | jq '.checkpoints[].findings[].message'\n";
  }
  void declare(Options& options) override {
    options.positional(paths_, "CKPT", "directory with .metadata, or a root with a tracker")
        .flag(skip_payload_, "--no-payload", "don't read payload files")
        .flag(json_, "--json", "print one JSON document")
        .text(report_, "--report", "DIR", "write report.json (lane files) and junit.xml there")
        .flag(quiet_, "-q,--quiet", "no progress, no notes");
  }

  ExitCode run(const Console& console) override {
    ExitCode worst = ExitCode::kPass;
    PosixClock clock;
    const std::uint64_t start = clock.now_ns();
    std::vector<std::pair<std::string, VerifyReport>> examined;
    for (const auto& path : paths_) {
      try {
        examined.emplace_back(path, examine(path, console));
        const auto& report = examined.back().second;
        if (!json_) print(path, report, console);
        if (unreadable(report)) worst = ExitCode::kUnusable;
        if (!report.whole()) worst = std::max(worst, ExitCode::kFail);
        if (report.vacuous() && worst == ExitCode::kPass) worst = ExitCode::kInconclusive;
      } catch (const Error& error) {
        console.err << "reprise verify: " << error.what() << '\n';
        worst = ExitCode::kUnusable;
      }
    }
    if (json_) console.out << verify_json(examined);
    if (!report_.empty()) {
      std::vector<reports::ScenarioResult> results;
      for (const auto& [path, report] : examined) results.push_back(verify_result(path, report));
      write_files_report(std::move(results), static_cast<double>(clock.now_ns() - start) * 1e-9,
                         report_);
    }
    return worst;
  }

 private:
  VerifyReport examine(const std::string& path, const Console& console) const {
    const StoredPath stored = stored_path(path);
    PosixClock clock;
    ProgressLine progress(
        console, clock, "verify",
        quiet_ || json_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kIfTerminal);
    return verify(*stored.store, stored.path,
                  skip_payload_ ? PayloadCheck::kSkip : PayloadCheck::kRead, progress);
  }

  void print(const std::string& path, const VerifyReport& report, const Console& console) const {
    for (const Finding& finding : report.findings) {
      if (quiet_ && finding.severity == Severity::kNote) continue;
      console.out << path << ": " << finding << '\n';
    }
    console.out << path << ": " << verdict_line(report) << '\n';
  }

  std::vector<std::string> paths_;
  std::string report_;
  bool skip_payload_ = false;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_verify() { return std::make_unique<VerifyVerb>(); }

}  // namespace reprise::cli
