#include "reports/gate.hpp"

#include <algorithm>

#include "reports/document.hpp"

namespace reprise::reports {
namespace {

using Json = nlohmann::json;

constexpr const char* kRunAgain = "run the lane again with --report";
constexpr const char* kShowAgain =
    "show it again; if it is meant to go, write a new baseline with --write-baseline";

std::string than(std::uint64_t now, const std::string& noun, std::uint64_t before) {
  return std::to_string(now) + " " + noun + ", the baseline has " + std::to_string(before);
}

/// Collects what speaks against one report.
class Bench {
 public:
  Bench(std::string file, std::vector<Refusal>& refusals)
      : file_(std::move(file)), refusals_(refusals) {}

  void refuse(std::string subject, std::string reason, std::string fix) {
    refusals_.push_back({file_, std::move(subject), std::move(reason), std::move(fix)});
  }
  void adopt(const Refusal& refusal) { refuse(refusal.subject, refusal.reason, refusal.fix); }

 private:
  std::string file_;
  std::vector<Refusal>& refusals_;
};

void check_identity(const Project& project, const GateOptions& options, Bench& bench) {
  const bool same =
      options.commit.size() >= kCommitDigitsMin && project.commit.starts_with(options.commit);
  if (!same) {
    bench.refuse(
        "project.commit",
        "the report is of commit '" + project.commit + "', in question is '" + options.commit + "'",
        "run that commit's build, or name the commit meant with --commit");
  }
  if (project.dirty && !options.allow_dirty) {
    bench.refuse("project.dirty", "the tree had changes that are in no commit",
                 "commit them and run again, or allow it with --allow-dirty");
  }
}

void check_skipped(const std::string& name, const ScenarioFloor& now, const LaneFloor& floor,
                   Bench& bench) {
  const auto before = floor.scenarios.find(name);
  if (before == floor.scenarios.end()) {
    bench.refuse(name, "not_run, and the baseline knows no such skip: " + now.skipped, kShowAgain);
  } else if (before->second.skipped.empty()) {
    bench.refuse(name, "not_run, but it was for the baseline: " + now.skipped,
                 "make it run here; " + std::string(kRunAgain));
  }
}

void check_scenario(const std::string& name, const ScenarioFloor& before, const LaneFloor& shown,
                    Bench& bench) {
  const auto now = shown.scenarios.find(name);
  if (now == shown.scenarios.end()) {
    bench.refuse(name, "the baseline has it, the report has not", kShowAgain);
    return;
  }
  if (!now->second.skipped.empty()) return;  // check_skipped's word
  const Compared& least = before.compared;
  const Compared& compared = now->second.compared;
  if (compared.elements < least.elements) {
    bench.refuse(name, than(compared.elements, "elements compared", least.elements), kShowAgain);
  }
  if (compared.leaves < least.leaves) {
    bench.refuse(name, than(compared.leaves, "tensors and objects compared", least.leaves),
                 kShowAgain);
  }
}

void check_totals(const LaneFloor& shown, const LaneFloor& floor, Bench& bench) {
  const LaneTotals now = totals_of(shown);
  const LaneTotals before = totals_of(floor);
  if (now.scenarios < before.scenarios) {
    bench.refuse("scenarios", than(now.scenarios, "run", before.scenarios), kShowAgain);
  }
  if (now.elements < before.elements) {
    bench.refuse("elements", than(now.elements, "compared in all", before.elements), kShowAgain);
  }
  if (now.skipped > before.skipped) {
    bench.refuse("skipped", than(now.skipped, "skipped", before.skipped), kShowAgain);
  }
}

void check_others(const LaneFloor& shown, const LaneFloor& floor, Bench& bench) {
  for (const auto& [name, cases] : floor.properties) {
    const auto now = shown.properties.find(name);
    if (now == shown.properties.end()) {
      bench.refuse("property " + name, "the baseline has it, the report has not", kShowAgain);
    } else if (now->second < cases) {
      bench.refuse("property " + name, than(now->second, "cases", cases), kShowAgain);
    }
  }
  for (const auto& name : floor.mutants) {
    if (shown.mutants.contains(name)) continue;
    bench.refuse("mutant " + name, "the baseline has it, the report has not", kShowAgain);
  }
  if (shown.runs_doubled < floor.runs_doubled) {
    bench.refuse("determinism", than(shown.runs_doubled, "runs doubled", floor.runs_doubled),
                 kShowAgain);
  }
}

void check_floor(const LaneFloor& shown, const LaneFloor& floor, Bench& bench) {
  for (const auto& [name, now] : shown.scenarios) {
    if (!now.skipped.empty()) check_skipped(name, now, floor, bench);
  }
  for (const auto& [name, before] : floor.scenarios) check_scenario(name, before, shown, bench);
  check_totals(shown, floor, bench);
  check_others(shown, floor, bench);
}

bool wanted(const std::string& lane, const GateOptions& options) {
  return options.lanes.empty() ||
         std::find(options.lanes.begin(), options.lanes.end(), lane) != options.lanes.end();
}

void judge_one(const Submission& submission, const Baseline& baseline, const GateOptions& options,
               GateRuling& ruling) {
  Bench bench(submission.file, ruling.refusals);
  if (!submission.report) {
    bench.refuse("", submission.unreadable, kRunAgain);
    return;
  }
  const Report& report = *submission.report;
  check_identity(report.project, options, bench);
  for (const auto& refusal : weigh(report)) bench.adopt(refusal);
  const auto floor = baseline.find(report.lane);
  if (floor == baseline.end() || !wanted(report.lane, options)) {
    bench.refuse("lane", "'" + report.lane + "' is no lane that is judged here",
                 "leave the report out, or write a baseline that has the lane");
    return;
  }
  const LaneFloor shown = floor_of(report);
  check_floor(shown, floor->second, bench);
  ruling.lanes.push_back({report.lane, totals_of(shown), totals_of(floor->second)});
}

/// One report for each lane, neither less nor more.
void check_lanes(std::span<const Submission> submissions, const Baseline& baseline,
                 const GateOptions& options, GateRuling& ruling) {
  std::map<std::string, std::string> seen;
  for (const auto& submission : submissions) {
    if (!submission.report) continue;
    const auto [at, first] = seen.try_emplace(submission.report->lane, submission.file);
    if (first) continue;
    Bench(submission.file, ruling.refusals)
        .refuse("lane", "'" + at->first + "' has a report already: " + at->second,
                "hand in one report a lane");
  }
  std::vector<std::string> demanded = options.lanes;
  if (demanded.empty()) {
    for (const auto& [lane, floor] : baseline) demanded.push_back(lane);
  }
  for (const auto& lane : demanded) {
    if (seen.contains(lane)) continue;
    Bench("", ruling.refusals)
        .refuse("lane " + lane, "no report of it was handed in",
                "hand it in, or name the lanes to be judged with --lane");
  }
}

/// Text of a report must not break a line, nor reach a terminal as a command.
void make_one_line(std::string& text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
}

Json to_json_value(const LaneTotals& totals) {
  return {
      {"scenarios", totals.scenarios}, {"skipped", totals.skipped}, {"elements", totals.elements}};
}

}  // namespace

GateRuling judge_gate(std::span<const Submission> submissions, const Baseline& baseline,
                      const GateOptions& options) {
  GateRuling ruling;
  for (const auto& submission : submissions) judge_one(submission, baseline, options, ruling);
  check_lanes(submissions, baseline, options, ruling);
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
    lanes.push_back({{"lane", lane.lane},
                     {"shown", to_json_value(lane.shown)},
                     {"demanded", to_json_value(lane.demanded)}});
  }
  return text_of({{"accepted", ruling.accepted()},
                  {"commit", commit},
                  {"lanes", lanes},
                  {"refusals", refusals}});
}

}  // namespace reprise::reports
