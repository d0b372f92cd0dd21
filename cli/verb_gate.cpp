#include <fmt/format.h>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/arguments/release_policy.hpp"
#include "cli/verb.hpp"
#include "core/base/bytes.hpp"
#include "core/base/print.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "driver/record/build_info.hpp"
#include "driver/runs/property.hpp"
#include "reports/gate.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::cli {
namespace {

constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 30;

/// Reads a file. If the argument is a directory, reads report.json there.
std::string text_at(const std::string& argument) {
  const StoredPath stored = stored_path(argument);
  const auto entry = stored.store->stat(stored.path);
  const bool directory = entry && entry->directory;
  const std::string path = directory ? join_path(stored.path, "report.json") : stored.path;
  return std::string(as_text(read_all(*stored.store, path, kFileBytesMax)));
}

/// Removes the file's name and the colon after it from the start of the text, because the caller
/// prints the name itself.
std::string without_file(const std::string& text, const std::string& file) {
  return text.starts_with(file + ": ") ? text.substr(file.size() + 2) : text;
}

reports::Submission submission_of(const std::string& argument) {
  reports::Submission submission{.file = argument};
  try {
    submission.report = reports::parse_report(text_at(argument), argument);
  } catch (const reports::ReadError& error) {
    submission.unreadable = without_file(error.what(), argument);
  } catch (const Error& error) {
    submission.unreadable = error.code() == Code::kNotFound
                                ? "is absent: there is no such file, nor a report.json in it"
                                : "can't be read: " + error.message();
  }
  return submission;
}

reports::Baseline baseline_at(const std::string& file) {
  try {
    return reports::parse_baseline(text_at(file), file);
  } catch (const reports::ReadError& error) {
    throw Error(Code::kTornFile, "the baseline is unusable: " + without_file(error.what(), file),
                {.file = file});
  }
}

/// Returns the totals of a lane, each beside that of the baseline if there is one.
std::string summary_line(const reports::LaneSummary& lane) {
  const auto beside = [&lane](std::uint64_t reports::LaneTotals::*total) {
    return lane.demanded ? fmt::format(" (baseline {})", with_commas(*lane.demanded.*total)) : "";
  };
  using reports::LaneTotals;
  return fmt::format("{}: {} scenario{}{}, {} elements{}, {} skipped{}", name_of(lane.lane),
                     with_commas(lane.shown.scenarios), lane.shown.scenarios == 1 ? "" : "s",
                     beside(&LaneTotals::scenarios), with_commas(lane.shown.elements),
                     beside(&LaneTotals::elements), lane.shown.skipped,
                     beside(&LaneTotals::skipped));
}

std::string refusal_line(const reports::Refusal& refusal) {
  std::string place = refusal.file;
  if (!refusal.subject.empty()) place += (place.empty() ? "" : ": ") + refusal.subject;
  return fmt::format("{}: {}; fix: {}", place, refusal.reason, refusal.fix);
}

class GateVerb final : public Verb {
 public:
  std::string_view name() const override { return "gate"; }
  std::string_view summary() const override { return "Accept or refuse reports of a run"; }
  std::string_view examples() const override {
    return "  reprise gate build/report --baseline reports/baseline.json\n"
           "  reprise gate out/sim out/mpi --policy reports/release-policy.yaml\n"
           "  reprise gate out/sim out/mpi --baseline accepted/report.json --lane sim --lane mpi\n"
           "  reprise gate out/sim --baseline b.json --commit 3f1c9a2    not this program's own\n"
           "  reprise gate out/sim out/mpi --write-baseline reports/baseline.json\n"
           "\n"
           "Exit codes: 0 accepted, 1 refused (an absent or unreadable report, too), 2 wrong "
           "usage\n"
           "or an unusable baseline or policy.\n";
  }
  void declare(Options& options) override {
    options.positional(reports_, "REPORT", "report.json or its directory, one per lane")
        .text(baseline_, "--baseline", "FILE",
              "what reports must show at least: a file from --write-baseline, or a report.json")
        .texts(policies_, "--policy", "FILE",
               "what a release must show, lane by lane; more than one: all of them")
        .text(commit_, "--commit", "SHA",
              "commit that the reports must be from; default: this program's own")
        .texts(lanes_, "--lane", "NAME", "judge this lane of the baseline; default: all")
        .text(written_, "--write-baseline", "FILE",
              "write a new baseline from the reports if they are accepted")
        .flag(allow_dirty_, "--allow-dirty", "accept reports from a tree with uncommitted changes")
        .flag(json_, "--json", "print one JSON document");
  }

  ExitCode run(const Console& console) override {
    if (baseline_.empty() && written_.empty() && policies_.empty()) {
      throw Error(Code::kUsage,
                  "name a --baseline, a --policy, or a file to write a baseline to: "
                  "--write-baseline");
    }
    if (!policies_.empty() && !lanes_.empty()) {
      throw Error(Code::kUsage, "a policy names its lanes itself: leave out --lane");
    }
    const reports::GateOptions options{
        .commit = checked_commit(), .allow_dirty = allow_dirty_, .lanes = lanes()};
    std::vector<reports::Submission> submissions;
    for (const auto& argument : reports_) submissions.push_back(submission_of(argument));
    const auto shown = baseline_of_submitted(submissions);
    auto ruling =
        judge_gate(submissions, baseline_.empty() ? shown : baseline_at(baseline_), options);
    if (baseline_.empty()) {
      for (auto& lane : ruling.lanes) lane.demanded.reset();
    }
    add_policies(submissions, ruling);
    if (json_) {
      console.out << to_json(ruling, options.commit);
    } else {
      print(ruling, console);
    }
    if (!ruling.accepted()) return ExitCode::kFail;
    if (!written_.empty()) write_baseline(shown, console);
    return ExitCode::kPass;
  }

 private:
  std::vector<reports::ReportLane> lanes() const {
    std::vector<reports::ReportLane> lanes;
    for (const auto& name : lanes_) {
      const auto lane = reports::report_lane_named(name);
      if (!lane) throw Error(Code::kUsage, reports::no_lane(name));
      lanes.push_back(*lane);
    }
    return lanes;
  }

  std::string checked_commit() const {
    std::string commit(commit_.empty() ? build_info().commit : commit_);
    const bool hexadecimal = commit.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (hexadecimal && commit.size() >= reports::kCommitDigitsMin) return commit;
    throw Error(
        Code::kUsage,
        fmt::format("'{}' is no commit: name it by {} to 40 hexadecimal digits with --commit",
                    commit, reports::kCommitDigitsMin));
  }

  void add_policies(const std::vector<reports::Submission>& submissions,
                    reports::GateRuling& ruling) const {
    reports::Known known;
    for (const auto& mutant : sim::mutants()) known.mutants.emplace_back(mutant.name);
    for (const auto& property : driver::properties()) known.properties.emplace_back(property.name);
    for (const auto& file : policies_) {
      const auto lacking = judge_policy(submissions, read_policy(file), known);
      ruling.refusals.insert(ruling.refusals.end(), lacking.begin(), lacking.end());
    }
  }

  static reports::Baseline baseline_of_submitted(
      const std::vector<reports::Submission>& submissions) {
    std::vector<reports::Report> reports;
    for (const auto& submission : submissions) {
      if (submission.report) reports.push_back(*submission.report);
    }
    return reports::baseline_of(reports);
  }

  static void print(const reports::GateRuling& ruling, const Console& console) {
    for (const auto& refusal : ruling.refusals) console.out << refusal_line(refusal) << '\n';
    for (const auto& lane : ruling.lanes) console.out << summary_line(lane) << '\n';
    const auto count = ruling.refusals.size();
    console.out << (count == 0
                        ? std::string("accepted\n")
                        : fmt::format("refused: {} reason{}\n", count, count == 1 ? "" : "s"));
  }

  void write_baseline(const reports::Baseline& baseline, const Console& console) const {
    const StoredPath target = stored_path(written_);
    write_atomically(*target.store, target.path, as_bytes(to_json(baseline)));
    if (!json_) console.out << "baseline: " << written_ << '\n';
  }

  std::vector<std::string> reports_;
  std::vector<std::string> lanes_;
  std::vector<std::string> policies_;
  std::string baseline_;
  std::string commit_;
  std::string written_;
  bool allow_dirty_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_gate() { return std::make_unique<GateVerb>(); }

}  // namespace reprise::cli
