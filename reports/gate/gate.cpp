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

std::string than(std::uint64_t now, const std::string& noun, std::uint64_t before) {
  return with_commas(now) + " " + noun + ", but the baseline has " + with_commas(before);
}

/// Collects the reasons to refuse one report.
class RefusalCollector {
 public:
  RefusalCollector(std::string file, std::vector<Refusal>& refusals)
      : file_(std::move(file)), refusals_(refusals) {}

  void refuse(std::string subject, std::string reason, std::string fix) {
    refusals_.push_back({file_, std::move(subject), std::move(reason), std::move(fix)});
  }
  void adopt(const Refusal& refusal) { refuse(refusal.subject, refusal.reason, refusal.fix); }

 private:
  std::string file_;
  std::vector<Refusal>& refusals_;
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
    refusals.refuse(name, "it is in the baseline but not in the report", kShowAgain);
    return;
  }
  if (!now->second.skipped.empty()) return;  // check_skipped reports the scenario
  check_same(name, now->second, before, with, refusals);
  const Compared& least = before.compared;
  const Compared& compared = now->second.compared;
  if (compared.elements < least.elements) {
    refusals.refuse(name, than(compared.elements, "elements compared", least.elements), kShowAgain);
  }
  if (compared.leaves < least.leaves) {
    refusals.refuse(name, than(compared.leaves, "tensors and objects compared", least.leaves),
                    kShowAgain);
  }
  if (now->second.lives < before.lives) {
    refusals.refuse(name, than(now->second.lives, "lives", before.lives), kShowAgain);
  }
  if (now->second.faults < before.faults) {
    refusals.refuse(name, than(now->second.faults, "planned faults", before.faults), kShowAgain);
  }
}

/// Says which kinds of evidence are in the baseline but entirely missing in the report. `reprise
/// run` without options produces none of these kinds.
struct LeftOut {
  bool properties = false;
  bool mutants = false;
  bool doubled = false;
  /// Number of scenarios of the baseline that the report lacks. Counted only if nothing was run
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
  if (!sample && now.scenarios < before.scenarios) {
    refusals.refuse("scenarios", than(now.scenarios, "run", before.scenarios), kShowAgain);
  }
  if (!sample && now.elements < before.elements) {
    refusals.refuse("elements", than(now.elements, "compared in all", before.elements), kShowAgain);
  }
  if (now.skipped > before.skipped) {
    refusals.refuse("skipped", than(now.skipped, "skipped", before.skipped), kShowAgain);
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
  const auto add = [&text](const std::string& what, std::uint64_t before) {
    text += (text.empty() ? "" : ", ") + what + " (the baseline has " + with_commas(before) + ")";
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
  for (const auto& [name, cases] : floor.properties) {
    if (lacks.properties) break;
    const auto now = shown.properties.find(name);
    if (now == shown.properties.end()) {
      refusals.refuse("property " + name, "it is in the baseline but not in the report",
                      kShowAgain);
    } else if (now->second < cases) {
      refusals.refuse("property " + name, than(now->second, "cases", cases), kShowAgain);
    }
  }
  for (const auto& name : floor.mutants) {
    if (lacks.mutants || shown.mutants.contains(name)) continue;
    refusals.refuse("mutant " + name, "it is in the baseline but not in the report", kShowAgain);
  }
  for (const auto& name : floor.matrix) {
    if (shown.matrix.contains(name)) continue;
    refusals.refuse("matrix", "it does not show that " + name + " is caught, but the baseline does",
                    kShowAgain);
  }
  if (shown.matrix_scenarios < floor.matrix_scenarios) {
    refusals.refuse("matrix", than(shown.matrix_scenarios, "scenarios", floor.matrix_scenarios),
                    kShowAgain);
  }
  for (const auto& [space, pairs] : floor.exhaustive) {
    const auto now = shown.exhaustive.find(space);
    const std::uint64_t passed = now == shown.exhaustive.end() ? 0 : now->second;
    if (passed >= pairs) continue;
    refusals.refuse("exhaustive", than(passed, "pairs passed with " + space, pairs), kShowAgain);
  }
  if (shown.timelines < floor.timelines) {
    refusals.refuse("coverage", than(shown.timelines, "timelines searched", floor.timelines),
                    kShowAgain);
  }
  for (const auto& mark : floor.marks) {
    if (shown.marks.contains(mark)) continue;
    refusals.refuse("coverage",
                    "the baseline reached the mark '" + mark + "', but the report did not",
                    kShowAgain);
  }
  if (!lacks.doubled && shown.runs_doubled < floor.runs_doubled) {
    refusals.refuse("determinism", than(shown.runs_doubled, "runs doubled", floor.runs_doubled),
                    kShowAgain);
  }
}

void check_floor(const LaneFloor& shown, const LaneFloor& floor, const LeftOut& lacks,
                 RefusalCollector& refusals) {
  for (const auto& [name, now] : shown.scenarios) {
    if (!now.skipped.empty()) check_skipped(name, now, floor, refusals);
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

void judge_one(const Submission& submission, const Baseline& baseline, const GateOptions& options,
               GateRuling& ruling) {
  RefusalCollector refusals(submission.file, ruling.refusals);
  if (!submission.report) {
    refusals.refuse("", submission.unreadable, submission.newer ? kReadNewer : kRunAgain);
    return;
  }
  const Report& report = *submission.report;
  check_identity(report.project, options, refusals);
  for (auto& refusal : weigh(report)) {
    if (refusal.subject == kInterrupted) {
      refusal.fix = fix_by_command(submission, options.program, refusal.fix, true, refusal.fix);
    }
    refusals.adopt(refusal);
  }
  const auto floor = baseline.find(report.lane);
  if (floor == baseline.end() || !wanted(report.lane, options)) {
    refusals.refuse("lane", "'" + name_of(report.lane) + "' is not one of the lanes to judge",
                    "leave the report out, or write a baseline that has the lane");
    return;
  }
  const LaneFloor& shown = ruling.shown.at(report.lane);
  // A run with a mutant, or one that was interrupted, falls short of the floor in many places.
  if (report.mutant.empty() && !report.interrupted) {
    const LeftOut lacks = left_out(shown, floor->second);
    check_full(submission, lacks, floor->second, options.program, refusals);
    check_floor(shown, floor->second, lacks, refusals);
  }
  ruling.lanes.push_back({report.lane, totals_of(shown), totals_of(floor->second)});
}

/// Adds a refusal unless there is exactly one report for each lane.
void check_lanes(std::span<const Submission> submissions, const Baseline& baseline,
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
  std::vector<ReportLane> demanded = options.lanes;
  if (demanded.empty()) {
    for (const auto& [lane, floor] : baseline) demanded.push_back(lane);
  }
  for (const ReportLane lane : lanes_without_report(submissions, demanded)) {
    RefusalCollector("", ruling.refusals)
        .refuse("lane " + name_of(lane), "no report of it was given",
                "give one, or name the lanes to judge with --lane");
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

GateRuling judge_gate(std::span<const Submission> submissions, const Baseline& baseline,
                      const GateOptions& options) {
  GateRuling ruling;
  ruling.today = options.today;
  Settled settled = settle(submissions, baseline, options.known_failures, options.today);
  for (const auto& one : settled.submissions) {
    if (one.report) ruling.shown[one.report->lane] = floor_of(*one.report);
    judge_one(one, settled.baseline, options, ruling);
  }
  check_lanes(settled.submissions, settled.baseline, options, ruling);
  check_digests(settled.submissions, options, ruling);
  ruling.refusals.insert(ruling.refusals.end(), settled.refusals.begin(), settled.refusals.end());
  for (const auto& [file, failure] : settled.accepted) {
    if (failure.kind == KnownFailure::Kind::kProperty) {
      ruling.shown[failure.lane].properties.erase(failure.name);
    }
  }
  ruling.accepted_failures = std::move(settled.accepted);
  ruling.settled = std::move(settled.submissions);
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
  for (const auto& one : ruling.settled) {
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
