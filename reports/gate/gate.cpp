#include "reports/gate/gate.hpp"

#include <algorithm>

#include "core/base/print.hpp"
#include "reports/document.hpp"
#include "reports/lacks.hpp"
#include "reports/read_error.hpp"

namespace reprise::reports {
namespace {

using Json = nlohmann::json;

constexpr const char* kRunAgain = "run the lane again with --report";
constexpr const char* kShowAgain =
    "restore it; if it was removed on purpose, write a new baseline with --write-baseline";

/// Collects the reasons to refuse one report, by one demand.
class RefusalCollector {
 public:
  RefusalCollector(std::string file, std::vector<Refusal>& refusals, bool generated = true)
      : file_(std::move(file)), refusals_(refusals), generated_(generated) {}

  /// True if the demand is a baseline.
  bool generated() const { return generated_; }
  /// Returns what stands before a number that is demanded.
  std::string has() const { return generated_ ? "the baseline has " : "the policy demands "; }

  void refuse(std::string subject, std::string reason, std::string fix) {
    refusals_.push_back({file_, std::move(subject), std::move(reason), std::move(fix)});
  }
  /// Refuses unless enough is shown. `fix` is the remedy that a policy has.
  void least(const std::string& subject, const std::string& noun, std::uint64_t shown,
             std::uint64_t demanded, const char* fix = kRunAgain) {
    if (shown >= demanded) return;
    refuse(subject, with_commas(shown) + " " + noun + ", but " + has() + with_commas(demanded),
           generated_ ? kShowAgain : fix);
  }
  /// Refuses what is demanded by name and not in the report.
  void lacks(const std::string& subject, const char* fix = kRunAgain) {
    refuse(subject,
           generated_ ? "it is in the baseline but not in the report"
                      : "it is not in the report, but the policy demands it",
           generated_ ? kShowAgain : fix);
  }
  void adopt(const Refusal& refusal) { refuse(refusal.subject, refusal.reason, refusal.fix); }

 private:
  std::string file_;
  std::vector<Refusal>& refusals_;
  bool generated_;
};

void check_identity(const Project& project, const GateOptions& options,
                    RefusalCollector& refusals) {
  const bool same =
      options.commit.size() >= kCommitDigitsMin && project.commit.starts_with(options.commit);
  if (!same) {
    refusals.refuse("project.commit",
                    "the report is of commit '" + project.commit +
                        "', but the commit in question is '" + options.commit + "'",
                    "run the build of that commit, or name the intended commit with --commit");
  }
  if (project.dirty && !options.allow_dirty) {
    refusals.refuse("project.dirty", "the tree had uncommitted changes",
                    "commit them and run again, or allow it with --allow-dirty");
  }
}

void check_skipped(const std::string& name, const ScenarioFloor& now, const LaneFloor& floor,
                   RefusalCollector& refusals) {
  const auto before = floor.scenarios.find(name);
  if (before == floor.scenarios.end()) {
    refusals.refuse(name, "not_run, but it is not skipped in the baseline: " + now.skipped,
                    kShowAgain);
  } else if (before->second.skipped.empty()) {
    refusals.refuse(name, "not_run, but it was run for the baseline: " + now.skipped,
                    "make it run here; " + std::string(kRunAgain));
  }
}

/// Says whether the report and the baseline have the same seed, and whether they also come from the
/// same program. This decides which values must be equal.
struct Comparable {
  bool seed = false;
  bool program = false;
};

Comparable comparable(const LaneFloor& shown, const LaneFloor& floor) {
  const auto& [commit, dirty, build] = shown.project;
  const bool seed = shown.seed == floor.seed;
  const bool program = !dirty && !floor.project.dirty && commit == floor.project.commit &&
                       build == floor.project.build;
  return {seed, seed && program};
}

void check_same(const std::string& name, const ScenarioFloor& now, const ScenarioFloor& before,
                Comparable with, RefusalCollector& refusals) {
  const auto differs = [&](const char* what, const std::string& is, const std::string& was) {
    refusals.refuse(
        name, std::string(what) + " is '" + is + "', but the baseline has '" + was + "'",
        with.program ? "the same program and seed must give the same value: run the lane again"
                     : "if it is intended, write a new baseline with --write-baseline");
  };
  // Older baselines have neither course nor digest, so there is nothing to compare. If a run ended
  // in a refusal, its result has a course but no digest.
  if (with.seed && !(before.digest.empty() && before.course.empty())) {
    if (now.course != before.course) differs("its outcome", now.course, before.course);
    if (now.digest != before.digest) differs("the content digest", now.digest, before.digest);
    if (!before.account.empty() && now.course == before.course && now.account != before.account) {
      differs("the hash of its lives' layouts, steps, loads, checkpoints and faults", now.account,
              before.account);
    }
  }
  if (!with.program || before.event_hash.empty()) return;
  if (now.event_hash != before.event_hash) {
    differs("the event hash", now.event_hash, before.event_hash);
  }
  const auto count = [](std::uint64_t number) { return std::to_string(number); };
  if (now.compared.elements > before.compared.elements) {
    differs("the number of elements", count(now.compared.elements),
            count(before.compared.elements));
  }
  if (now.compared.leaves > before.compared.leaves) {
    differs("the number of tensors and objects", count(now.compared.leaves),
            count(before.compared.leaves));
  }
}

void check_scenario(const std::string& name, const ScenarioFloor& before, const LaneFloor& shown,
                    Comparable with, RefusalCollector& refusals) {
  const auto now = shown.scenarios.find(name);
  if (now == shown.scenarios.end()) {
    refusals.lacks(name);
    return;
  }
  if (!now->second.skipped.empty()) return;  // check_skipped reports the scenario
  check_same(name, now->second, before, with, refusals);
  const Compared& least = before.compared;
  const Compared& compared = now->second.compared;
  refusals.least(name, "elements compared", compared.elements, least.elements);
  refusals.least(name, "tensors and objects compared", compared.leaves, least.leaves);
  refusals.least(name, "lives", now->second.lives, before.lives);
  refusals.least(name, "planned faults", now->second.faults, before.faults);
}

/// Says which kinds of evidence are demanded but entirely missing in the report. `reprise run`
/// without options produces none of these kinds.
struct LeftOut {
  bool properties = false;
  bool mutants = false;
  bool doubled = false;
  /// Number of scenarios demanded by name that the report lacks. Counted only if nothing was run
  /// twice or if they are many: one reason then stands for all of them.
  std::uint64_t scenarios = 0;

  bool any() const { return properties || mutants || doubled || scenarios > 0; }
};

LeftOut left_out(const LaneFloor& shown, const LaneFloor& floor) {
  LeftOut lacks{.properties = shown.properties.empty() && !floor.properties.empty(),
                .mutants = shown.mutants.empty() && !floor.mutants.empty(),
                .doubled = shown.runs_doubled == 0 && floor.runs_doubled != 0};
  constexpr std::uint64_t kNamed = 20;
  for (const auto& [name, before] : floor.scenarios) {
    if (!shown.scenarios.contains(name)) ++lacks.scenarios;
  }
  if (!lacks.doubled && lacks.scenarios <= kNamed) lacks.scenarios = 0;
  return lacks;
}

void check_totals(const LaneFloor& shown, const LaneFloor& floor, const LeftOut& lacks,
                  RefusalCollector& refusals) {
  const LaneTotals now = totals_of(shown);
  const LaneTotals before = totals_of(floor);
  const bool sample = lacks.scenarios > 0;  // check_full reports it
  if (!sample) {
    refusals.least("scenarios", "run", now.scenarios, before.scenarios,
                   "run the whole catalogue with --report");
    refusals.least("elements", "compared in all", now.elements, before.elements);
  }
  if (now.skipped > before.skipped) {
    refusals.refuse("skipped",
                    with_commas(now.skipped) + " skipped, but " +
                        (refusals.generated() ? refusals.has() : "the policy allows ") +
                        with_commas(before.skipped),
                    refusals.generated() ? kShowAgain : "run the lane where it can run everything");
  }
}

/// Returns the directory of a report. The argument is that directory or a file in it.
std::string directory_of(const std::string& file) {
  if (!file.ends_with(".json")) return file;
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, std::max<std::size_t>(slash, 1));
}

/// Returns the command that makes the report full, as "words: command"; on lanes whose command is
/// not known, returns `otherwise`. If `anew`, every scenario has to run again.
std::string fix_by_command(const Submission& submission, const std::string& program,
                           const std::string& words, bool anew, const std::string& otherwise) {
  const Report& report = *submission.report;
  if (report.lane != ReportLane::kSim) return otherwise;
  return words + ": " +
         command_for_full(
             report,
             {.program = program, .directory = directory_of(submission.file), .anew = anew});
}

/// If the report lacks some kinds of evidence, adds one refusal that names all of them and the
/// command that produces them.
void check_full(const Submission& submission, const LeftOut& lacks, const LaneFloor& floor,
                const std::string& program, RefusalCollector& refusals) {
  if (!lacks.any()) return;
  std::string text;
  const auto add = [&](const std::string& what, std::uint64_t before) {
    text += (text.empty() ? "" : ", ") + what + " (" + refusals.has() + with_commas(before) + ")";
  };
  if (lacks.scenarios > 0) {
    const bool one = lacks.scenarios == 1;
    add(counted(lacks.scenarios, "scenario") + (one ? " is" : " are") + " missing",
        floor.scenarios.size());
  }
  if (lacks.doubled) add("nothing was run twice", floor.runs_doubled);
  if (lacks.properties) add("no property", floor.properties.size());
  if (lacks.mutants) add("no mutant", floor.mutants.size());
  refusals.refuse("evidence", "is incomplete: " + text,
                  fix_by_command(submission, program, "complete it", lacks.scenarios > 0,
                                 lacks.doubled ? "run the lane again with --double" : kRunAgain));
}

/// check_full reports the kinds of evidence that are left out.
void check_others(const LaneFloor& shown, const LaneFloor& floor, const LeftOut& lacks,
                  RefusalCollector& refusals) {
  std::uint64_t all_cases = 0;
  for (const auto& [name, cases] : shown.properties) all_cases = saturating_sum(all_cases, cases);
  if (!lacks.properties) {
    refusals.least("properties", "random cases", all_cases, floor.cases,
                   "add them with 'reprise search properties --report'");
  }
  for (const auto& [name, cases] : floor.properties) {
    if (lacks.properties) break;
    const auto now = shown.properties.find(name);
    if (now == shown.properties.end()) {
      refusals.lacks("property " + name, "add it with 'reprise search properties --report'");
    } else {
      refusals.least("property " + name, "cases", now->second, cases);
    }
  }
  for (const auto& name : floor.mutants) {
    if (lacks.mutants || shown.mutants.contains(name)) continue;
    refusals.lacks("mutant " + name, "add it with 'reprise mutants --report'");
  }
  for (const auto& name : floor.matrix) {
    if (shown.matrix.contains(name)) continue;
    refusals.refuse("matrix", "it does not show that " + name + " is caught, but the baseline does",
                    kShowAgain);
  }
  refusals.least("matrix", "scenarios", shown.matrix_scenarios, floor.matrix_scenarios);
  for (const auto& [space, pairs] : floor.exhaustive) {
    const auto now = shown.exhaustive.find(space);
    const std::uint64_t passed = now == shown.exhaustive.end() ? 0 : now->second;
    refusals.least("exhaustive", "pairs passed with " + space, passed, pairs,
                   "add them with 'reprise search exhaust --report'");
  }
  refusals.least("coverage", "timelines searched", shown.timelines, floor.timelines,
                 "add them with 'reprise search explore --report'");
  for (const auto& mark : floor.marks) {
    if (shown.marks.contains(mark)) continue;
    refusals.refuse("coverage",
                    "the baseline reached the mark '" + mark + "', but the report did not",
                    kShowAgain);
  }
  if (!lacks.doubled) {
    refusals.least("determinism", "runs doubled", shown.runs_doubled, floor.runs_doubled,
                   "run the lane again with --double");
  }
}

void check_floor(const LaneFloor& shown, const LaneFloor& floor, const LeftOut& lacks,
                 RefusalCollector& refusals) {
  for (const auto& [name, now] : shown.scenarios) {
    if (refusals.generated() && !now.skipped.empty()) check_skipped(name, now, floor, refusals);
  }
  const Comparable with = comparable(shown, floor);
  for (const auto& [name, before] : floor.scenarios) {
    if (lacks.scenarios > 0 && !shown.scenarios.contains(name)) continue;
    check_scenario(name, before, shown, with, refusals);
  }
  check_totals(shown, floor, lacks, refusals);
  check_others(shown, floor, lacks, refusals);
}

/// Refuses reports that have none of the digests demanded, and digests that no report has.
void check_digests(std::span<const Submission> submissions, const GateOptions& options,
                   GateRuling& ruling) {
  if (options.digests.empty()) return;
  ruling.by_digest = true;
  const auto demanded = [&](const Submission& one) {
    return std::ranges::find(options.digests, one.sha256) != options.digests.end();
  };
  for (const auto& one : submissions) {
    if (one.sha256.empty() || demanded(one)) continue;
    ruling.refusals.push_back({one.file, "sha256", "is " + one.sha256 + ", which was not demanded",
                               "give the report that the job wrote; its log has the digest"});
  }
  for (const auto& digest : options.digests) {
    if (std::ranges::find(submissions, digest, &Submission::sha256) != submissions.end()) continue;
    ruling.refusals.push_back({"", "sha256 " + digest, "none of the given reports has it",
                               "give the unchanged report that the job wrote"});
  }
}

bool wanted(ReportLane lane, const GateOptions& options) {
  return options.lanes.empty() ||
         std::find(options.lanes.begin(), options.lanes.end(), lane) != options.lanes.end();
}

/// Judges a report by itself.
void judge_alone(const Submission& submission, const GateOptions& options,
                 RefusalCollector& refusals) {
  check_identity(submission.report->project, options, refusals);
  for (auto& refusal : check_evidence(*submission.report)) {
    if (refusal.subject == kInterrupted) {
      refusal.fix = fix_by_command(submission, options.program, refusal.fix, true, refusal.fix);
    }
    refusals.adopt(refusal);
  }
}

void judge_one(const Submission& submission, std::span<const Demand> demands,
               const GateOptions& options, GateRuling& ruling) {
  RefusalCollector refusals(submission.file, ruling.refusals);
  if (!submission.report) {
    refusals.refuse("", submission.unreadable, submission.newer ? kReadNewer : kRunAgain);
    return;
  }
  judge_alone(submission, options, refusals);
  const Report& report = *submission.report;
  const LaneFloor& shown = ruling.shown.at(report.lane);
  LaneSummary summary{.lane = report.lane, .shown = totals_of(shown), .demanded = {}};
  bool judged = wanted(report.lane, options);
  for (const auto& demand : demands) {
    const auto floor = demand.lanes.find(report.lane);
    if (floor == demand.lanes.end()) {
      judged = judged && !demand.generated;
      continue;
    }
    if (demand.generated) summary.demanded = totals_of(floor->second);
    // A run with a mutant, or one that was interrupted, falls short of the floor in many places.
    if (!judged || !report.mutant.empty() || report.interrupted) continue;
    RefusalCollector lacking(submission.file, ruling.refusals, demand.generated);
    const LeftOut lacks = left_out(shown, floor->second);
    check_full(submission, lacks, floor->second, options.program, lacking);
    check_floor(shown, floor->second, lacks, lacking);
  }
  if (judged) {
    ruling.lanes.push_back(summary);
  } else {
    refusals.refuse("lane", "'" + name_of(report.lane) + "' is not one of the lanes to judge",
                    "leave the report out, or write a baseline that has the lane");
  }
}

/// Returns those of the lanes that have no report. A report that can't be read may be of any lane
/// and is refused itself, so none is returned if there are at least as many of those.
std::vector<ReportLane> lanes_without_report(std::span<const Submission> submissions,
                                             std::span<const ReportLane> lanes) {
  std::vector<ReportLane> lacking;
  for (const ReportLane lane : lanes) {
    const bool there = std::any_of(submissions.begin(), submissions.end(), [lane](const auto& one) {
      return one.report && one.report->lane == lane;
    });
    if (!there) lacking.push_back(lane);
  }
  const auto unreadable = std::count_if(submissions.begin(), submissions.end(),
                                        [](const auto& one) { return !one.report; });
  if (lacking.size() <= static_cast<std::size_t>(unreadable)) lacking.clear();
  return lacking;
}

/// Adds a refusal unless there is exactly one report for each lane.
void check_lanes(std::span<const Submission> submissions, std::span<const Demand> demands,
                 const GateOptions& options, GateRuling& ruling) {
  std::map<ReportLane, std::string> seen;
  for (const auto& submission : submissions) {
    if (!submission.report) continue;
    const auto [at, first] = seen.try_emplace(submission.report->lane, submission.file);
    if (first) continue;
    RefusalCollector(submission.file, ruling.refusals)
        .refuse("lane", "'" + name_of(at->first) + "' already has a report: " + at->second,
                "give one report per lane");
  }
  const auto refuse = [&](std::span<const ReportLane> lanes, const char* reason, const char* fix) {
    for (const ReportLane lane : lanes_without_report(submissions, lanes)) {
      RefusalCollector("", ruling.refusals).refuse("lane " + name_of(lane), reason, fix);
    }
  };
  constexpr const char* kName = "give one, or name the lanes to judge with --lane";
  refuse(options.lanes, "no report of it was given", kName);
  for (const auto& demand : demands) {
    std::vector<ReportLane> lanes;
    for (const auto& [lane, floor] : demand.lanes) lanes.push_back(lane);
    if (!demand.generated) {
      refuse(lanes, "the policy demands a report of it, but none was given",
             "run the lane with --report");
    } else if (options.lanes.empty()) {
      refuse(lanes, "no report of it was given", kName);
    }
  }
}

/// Replaces control characters: text of a report must neither break a line nor send commands to a
/// terminal.
void make_one_line(std::string& text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
}

Json to_json_value(const LaneTotals& totals) {
  return {
      {"scenarios", totals.scenarios}, {"skipped", totals.skipped}, {"elements", totals.elements}};
}

Json to_json_value(const AcceptedFailure& accepted) {
  const KnownFailure& known = accepted.failure;
  return {{"file", accepted.file},       {"lane", name_of(known.lane)},
          {"kind", name_of(known.kind)}, {"name", known.name},
          {"code", known.code},          {"reason", known.reason},
          {"owner", known.owner},        {"expires", to_text(known.expires)}};
}

}  // namespace

GateRuling judge_gate(std::span<const Submission> submissions, std::span<const Demand> demands,
                      const GateOptions& options) {
  GateRuling ruling;
  ruling.today = options.today;
  KnownFailuresApplied applied = apply_known_failures(submissions, demands, options.today);
  for (const auto& one : applied.submissions) {
    if (one.report) ruling.shown[one.report->lane] = floor_of(*one.report);
    for (const auto& [file, failure] : applied.accepted) {
      if (failure.kind == KnownFailure::Kind::kProperty) {
        ruling.shown[failure.lane].properties.erase(failure.name);
      }
    }
    judge_one(one, applied.demands, options, ruling);
  }
  check_lanes(applied.submissions, applied.demands, options, ruling);
  check_digests(applied.submissions, options, ruling);
  ruling.refusals.insert(ruling.refusals.end(), applied.refusals.begin(), applied.refusals.end());
  ruling.accepted_failures = std::move(applied.accepted);
  ruling.without_accepted = std::move(applied.submissions);
  for (auto& refusal : ruling.refusals) {
    for (auto* text : {&refusal.file, &refusal.subject, &refusal.reason, &refusal.fix}) {
      make_one_line(*text);
    }
  }
  return ruling;
}

std::string to_json(const GateRuling& ruling, const std::string& commit) {
  Json refusals = Json::array();
  for (const auto& refusal : ruling.refusals) {
    refusals.push_back({{"file", refusal.file},
                        {"subject", refusal.subject},
                        {"reason", refusal.reason},
                        {"fix", refusal.fix}});
  }
  Json lanes = Json::array();
  for (const auto& lane : ruling.lanes) {
    Json summary = {{"lane", name_of(lane.lane)}, {"shown", to_json_value(lane.shown)}};
    if (lane.demanded) summary["demanded"] = to_json_value(*lane.demanded);
    lanes.push_back(std::move(summary));
  }
  Json reports = Json::array();
  for (const auto& one : ruling.without_accepted) {
    reports.push_back({{"file", one.file}, {"sha256", one.sha256}});
  }
  Json known_failures = Json::array();
  for (const auto& known : ruling.accepted_failures) known_failures.push_back(to_json_value(known));
  return text_of({{"accepted", ruling.accepted()},
                  {"commit", commit},
                  {"known_failures", known_failures},
                  {"lanes", lanes},
                  {"not_known", ruling.by_digest ? Json::array() : Json::array({kNotKnown})},
                  {"refusals", refusals},
                  {"reports", reports},
                  {"today", to_text(ruling.today)}});
}

}  // namespace reprise::reports
