#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/arguments/release_policy.hpp"
#include "cli/arguments/report_argument.hpp"
#include "cli/frame/verb.hpp"
#include "core/base/bytes.hpp"
#include "core/base/print.hpp"
#include "core/ports/whole_file.hpp"
#include "driver/record/build_info.hpp"
#include "driver/runs/machine.hpp"
#include "reports/gate/gate.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

reports::Floors baseline_at(const std::string& file) {
  try {
    return reports::parse_baseline(report_text(file), file);
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
                     beside(&LaneTotals::elements), with_commas(lane.shown.skipped),
                     beside(&LaneTotals::skipped));
}

std::string known_failure_line(const reports::AcceptedFailure& accepted) {
  const auto& known = accepted.failure;
  return fmt::format("{}: known failure: {} {}: {}: {}; owner {}, accepted until {}", accepted.file,
                     name_of(known.kind), known.name, known.code, known.reason, known.owner,
                     reports::to_text(known.expires));
}

/// Returns how to call this program from the working directory: by a path below it, or else by the
/// absolute path. A shell looks for a word without a slash in PATH, so it is never one.
std::string program_called(const std::string& executable) {
  std::error_code failed;
  const auto here = std::filesystem::current_path(failed);
  const auto below = std::filesystem::path(executable).lexically_relative(here).string();
  if (failed || below.empty() || below.starts_with("..")) return executable;
  return below.find('/') == std::string::npos ? "./" + below : below;
}

bool is_hexadecimal(const std::string& text) {
  return text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string refusal_line(const reports::Refusal& refusal) {
  std::string place = refusal.file;
  if (!refusal.subject.empty()) place += (place.empty() ? "" : ": ") + refusal.subject;
  return fmt::format("{}: {}; fix: {}", place, refusal.reason, refusal.fix);
}

class GateVerb final : public Verb {
 public:
  std::string_view name() const override { return "gate"; }
  std::string_view summary() const override { return "Accept or refuse the reports of a run"; }
  std::string_view examples() const override {
    return "  reprise gate build/report --baseline reports/baseline.json\n"
           "  reprise gate out/sim out/mpi --policy reports/release-policy.yaml\n"
           "  reprise gate out/sim out/mpi --baseline accepted/report.json --lane sim --lane mpi\n"
           "  reprise gate out/sim --baseline b.json --commit 3f1c9a2    not this program's own\n"
           "  reprise gate out/sim out/mpi --write-baseline reports/baseline.json\n"
           "  reprise gate out/sim --baseline b.json --policy known.yaml --today 2026-01-31\n"
           "\nA policy says what reports must show, and which known failures are accepted until a "
           "date.\n"
           "\nExit codes: 0 accepted, 1 refused (also if a report is missing or unreadable), 2 "
           "wrong usage\n"
           "or an unusable baseline or policy.\n";
  }
  void declare(Options& options) override {
    options.positional(reports_, "REPORT", "report.json or its directory, one per lane")
        .text(baseline_, "--baseline", "FILE",
              "what reports must at least show: a file from --write-baseline, or a report.json")
        .texts(policies_, "--policy", "FILE",
               "what a release must show on each lane, and its known failures; may be given more "
               "than once: all of them apply")
        .text(today_, "--today", "DATE",
              "date that decides which known failures have expired, such as 2026-01-31; default: "
              "today, in UTC")
        .text(commit_, "--commit", "SHA",
              "commit that the reports must be from; default: this program's own")
        .texts(
            digests_, "--digest", "SHA256",
            "SHA-256 of a report, from the log of the job that wrote it; may be given more than "
            "once: each report must have one of these digests, and each digest must match a report")
        .texts(lanes_, "--lane", "NAME", "judge only this lane of the baseline; default: all")
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
    const auto demands = read_demands();
    const reports::GateOptions options{.commit = checked_commit(),
                                       .allow_dirty = allow_dirty_,
                                       .lanes = lanes(),
                                       .digests = digests(),
                                       .today = today(),
                                       .program = program_called(console.executable)};
    std::vector<reports::Submission> submissions;
    for (const auto& argument : reports_) {
      submissions.push_back(read_submission(argument, console.err));
    }
    const auto ruling = judge_gate(submissions, demands, options);
    if (json_) {
      console.out << to_json(ruling, options.commit);
    } else {
      print(ruling, console);
    }
    if (!ruling.accepted()) return ExitCode::kFail;
    if (!written_.empty()) write_baseline(ruling.shown, console);
    return ExitCode::kPass;
  }

 private:
  std::vector<reports::ReportLane> lanes() const {
    std::vector<reports::ReportLane> lanes;
    for (const auto& name : lanes_) {
      const auto lane = reports::named<reports::ReportLane>(name);
      if (!lane) throw Error(Code::kUsage, is_none_of(words_of(reports::ReportLane{}), name));
      lanes.push_back(*lane);
    }
    return lanes;
  }

  /// Returns the digests that are demanded, as they are written in a ruling.
  std::vector<std::string> digests() const {
    for (const auto& digest : digests_) {
      if (is_hexadecimal(digest) && digest.size() == 64) continue;
      throw Error(Code::kUsage,
                  "--digest needs the 64 hexadecimal digits of a SHA-256, not '" + digest + "'");
    }
    return digests_;
  }

  std::string checked_commit() const {
    std::string commit(commit_.empty() ? build_info().commit : commit_);
    if (is_hexadecimal(commit) && commit.size() >= reports::kCommitDigitsMin) return commit;
    throw Error(
        Code::kUsage,
        fmt::format("'{}' is not a commit: name one by {} to 40 hexadecimal digits with --commit",
                    commit, reports::kCommitDigitsMin));
  }

  /// Returns the baseline, if there is one, and the policies. Throws USAGE if a policy names lanes
  /// and `--lane` is given, too, or if nothing at all is demanded of the reports.
  std::vector<reports::Demand> read_demands() const {
    std::vector<reports::Demand> all;
    for (const auto& file : policies_) all.push_back(read_policy(file));
    const bool demands = std::any_of(all.begin(), all.end(),
                                     [](const auto& policy) { return !policy.lanes.empty(); });
    if (demands && !lanes_.empty()) {
      throw Error(Code::kUsage, "a policy names its own lanes: leave out --lane");
    }
    if (!demands && baseline_.empty() && written_.empty()) {
      throw Error(Code::kUsage,
                  "the policy only has known failures, so it demands nothing: name a --baseline, "
                  "or add 'lanes:' to it");
    }
    if (!baseline_.empty()) {
      all.insert(all.begin(), {.generated = true, .lanes = baseline_at(baseline_)});
    }
    return all;
  }

  reports::Date today() const {
    const std::string day = today_.empty() ? driver::utc_now().substr(0, 10) : today_;
    const auto date = reports::date_named(day);
    if (date) return *date;
    throw Error(Code::kUsage, "--today: '" + day + "' is not a date such as 2026-01-31");
  }

  static void print(const reports::GateRuling& ruling, const Console& console) {
    for (const auto& refusal : ruling.refusals) console.out << refusal_line(refusal) << '\n';
    for (const auto& known : ruling.accepted_failures) {
      console.out << known_failure_line(known) << '\n';
    }
    for (const auto& lane : ruling.lanes) console.out << summary_line(lane) << '\n';
    if (!ruling.by_digest) console.out << "not known: " << reports::kNotKnown << '\n';
    const auto count = ruling.refusals.size();
    const auto known = ruling.accepted_failures.size();
    const std::string with =
        known == 0 ? "" : fmt::format(" with {} known failure{}", known, known == 1 ? "" : "s");
    console.out << (count == 0
                        ? "accepted" + with + '\n'
                        : fmt::format("refused: {} reason{}\n", count, count == 1 ? "" : "s"));
  }

  void write_baseline(const reports::Floors& baseline, const Console& console) const {
    const StoredPath target = stored_path(written_);
    write_atomically(*target.store, target.path, as_bytes(to_json(baseline)));
    if (!json_) console.out << "baseline: " << written_ << '\n';
  }

  std::vector<std::string> reports_;
  std::vector<std::string> digests_;
  std::vector<std::string> lanes_;
  std::vector<std::string> policies_;
  std::string baseline_;
  std::string commit_;
  std::string written_;
  std::string today_;
  bool allow_dirty_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_gate() { return std::make_unique<GateVerb>(); }

}  // namespace reprise::cli
