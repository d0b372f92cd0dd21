#include "reports/gate/policy.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/print.hpp"

namespace reprise::reports {
namespace {

constexpr std::size_t kMutantsShown = 3;

/// Collects the demands that one report does not meet.
class Demands {
 public:
  Demands(std::string file, std::vector<Refusal>& refusals)
      : file_(std::move(file)), refusals_(refusals) {}

  void least(const std::string& subject, const std::string& noun, std::uint64_t shown,
             std::uint64_t demanded, const std::string& fix) {
    if (shown >= demanded) return;
    refuse(
        subject,
        std::to_string(shown) + " " + noun + ", but the policy demands " + std::to_string(demanded),
        fix);
  }
  void refuse(const std::string& subject, const std::string& reason, const std::string& fix) {
    refusals_.push_back({file_, subject, reason, fix});
  }

 private:
  std::string file_;
  std::vector<Refusal>& refusals_;
};

/// Returns the mutants that the report lacks or that were not caught.
std::vector<std::string> not_caught(const Report& report, std::span<const std::string> mutants) {
  std::vector<std::string> names;
  for (const auto& name : mutants) {
    const bool caught =
        std::any_of(report.mutants.begin(), report.mutants.end(), [&name](const auto& result) {
          return result.name == name && result.caught && !result.caught_by.empty();
        });
    if (!caught) names.push_back(name);
  }
  return names;
}

/// The accepted failures of one lane, by name.
struct Excused {
  std::uint64_t scenarios = 0;
  std::set<std::string> properties = {};
  std::set<std::string> mutants = {};
};

Excused excused_in(ReportLane lane, std::span<const AcceptedFailure> accepted) {
  Excused excused;
  for (const auto& [file, failure] : accepted) {
    if (failure.lane != lane) continue;
    switch (failure.kind) {
      case KnownFailure::Kind::kScenario:
        ++excused.scenarios;
        break;
      case KnownFailure::Kind::kProperty:
        excused.properties.insert(failure.name);
        break;
      case KnownFailure::Kind::kMutant:
        excused.mutants.insert(failure.name);
        break;
    }
  }
  return excused;
}

void judge_mutants(const Report& report, std::span<const std::string> mutants,
                   const Excused& excused, Demands& demands) {
  auto lacking = not_caught(report, mutants);
  std::erase_if(lacking, [&](const auto& name) { return excused.mutants.contains(name); });
  if (mutants.empty()) {
    demands.refuse("mutants", "this program knows none, but the policy demands all",
                   "judge it with the program that made the report");
  }
  if (lacking.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(lacking.size(), kMutantsShown); ++i) {
    names += (i == 0 ? "" : ", ") + lacking[i];
  }
  if (lacking.size() > kMutantsShown) names += ", ...";
  demands.refuse("mutants",
                 with_commas(lacking.size()) + " of " + with_commas(mutants.size()) +
                     " were not caught, but the policy demands all: " + names,
                 "add them with 'reprise mutants --report'");
}

void judge_exhaustive(const Report& report, const LanePolicy& policy, Demands& demands) {
  for (const auto& [space, pairs] : policy.exhaustive) {
    std::uint64_t passed = 0;
    for (const auto& tried : report.exhaustive) {
      if (tried.space() == space) passed = tried.passed();
    }
    demands.least("exhaustive", "pairs of layouts passed with " + space, passed, pairs,
                  "add them with 'reprise exhaust --report'");
  }
}

/// Returns the demanded number of scenarios, or of doubled runs, without those that are excused.
std::uint64_t without(const Excused& excused, std::uint64_t demanded) {
  return demanded - std::min(demanded, excused.scenarios);
}

void judge_properties(const Report& report, const LanePolicy& policy, const Known& known,
                      const Excused& excused, Demands& demands) {
  std::uint64_t cases = 0;
  for (const auto& property : report.properties) {
    if (!excused.properties.contains(property.name)) cases = saturating_sum(cases, property.cases);
  }
  demands.least("properties", "random cases", cases, policy.property_cases,
                "add them with 'reprise properties --report'");
  if (!policy.all_properties) return;
  for (const auto& name : known.properties) {
    const bool there = std::any_of(report.properties.begin(), report.properties.end(),
                                   [&](const auto& one) { return one.name == name; });
    if (there || excused.properties.contains(name)) continue;
    demands.refuse("properties", name + " is missing, but the policy demands all",
                   "add it with 'reprise properties --report'");
  }
}

void judge_lane(const Report& report, const LanePolicy& policy, const Known& known,
                const Excused& excused, Demands& demands) {
  const LaneTotals shown = totals_of(floor_of(report));
  demands.least("scenarios", "ran", shown.scenarios, without(excused, policy.scenarios),
                "run the whole catalogue with --report");
  if (shown.skipped > policy.skipped) {
    demands.refuse("skipped",
                   std::to_string(shown.skipped) + " skipped, but the policy allows " +
                       std::to_string(policy.skipped),
                   "run the lane where it can run everything");
  }
  demands.least("determinism", "runs doubled", runs_doubled(report),
                without(excused, policy.doubled), "run the lane again with --double");
  judge_properties(report, policy, known, excused, demands);
  demands.least("coverage", "random timelines searched",
                report.coverage ? report.coverage->runs : 0, policy.timelines,
                "add them with 'reprise explore --report'");
  if (policy.all_mutants) judge_mutants(report, known.mutants, excused, demands);
  judge_exhaustive(report, policy, demands);
}

}  // namespace

std::vector<Refusal> judge_policy(std::span<const Submission> submissions, const Policy& policy,
                                  const Known& known, std::span<const AcceptedFailure> accepted) {
  std::vector<Refusal> refusals;
  std::vector<ReportLane> lanes;
  for (const auto& [lane, demanded] : policy) {
    lanes.push_back(lane);
    const Excused excused = excused_in(lane, accepted);
    for (const auto& submission : submissions) {
      if (!submission.report || submission.report->lane != lane) continue;
      Demands demands(submission.file, refusals);
      judge_lane(*submission.report, demanded, known, excused, demands);
    }
  }
  for (const ReportLane lane : lanes_without_report(submissions, lanes)) {
    Demands("", refusals)
        .refuse("lane " + name_of(lane), "the policy demands a report of it, but none was given",
                "run the lane with --report");
  }
  return refusals;
}

}  // namespace reprise::reports
