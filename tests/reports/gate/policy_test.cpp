// Tests that each demand of a release policy refuses a report that does not meet it.

#include <gtest/gtest.h>

#include <functional>

#include "reports/gate/gate.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports::policy_test {
namespace {

/// Returns the policy that the sample report meets exactly.
LaneFloor sample_policy() {
  LaneFloor lane;
  lane.unnamed = {.scenarios = 3, .skipped = 1};
  lane.properties = {{"continuity", 0}, {"round-trip", 0}};
  lane.cases = 30;
  lane.mutants = {"floor-vs-ceil-chunk", "stale-plan"};
  lane.exhaustive = {{"dp_reshardable", 25}, {"dp_reshardable hsdp", 36}};
  lane.timelines = 100;
  lane.runs_doubled = 3;
  return lane;
}

std::vector<Refusal> judge(const Demand& policy, const std::vector<Submission>& submissions) {
  return judge_gate(submissions, {&policy, 1},
                    {.commit = kSampleCommit, .today = *date_named("2026-03-31")})
      .refusals;
}

std::vector<Refusal> judge(const LaneFloor& policy, const Report& report = sample_report()) {
  return judge({.lanes = {{ReportLane::kSim, policy}}}, {{.file = "r.json", .report = report}});
}

std::string text_of(const std::vector<Refusal>& refusals) {
  std::string text;
  for (const auto& refusal : refusals) {
    text += refusal.file + ": " + refusal.subject + ": " + refusal.reason + '\n';
    EXPECT_FALSE(refusal.fix.empty()) << text;
  }
  return text;
}

TEST(Policy, is_met_by_a_report_that_shows_exactly_what_it_demands) {
  EXPECT_EQ(text_of(judge(sample_policy())), "");
  LaneFloor skips;
  skips.unnamed.skipped = 1;
  EXPECT_EQ(text_of(judge(skips)), "");
  EXPECT_EQ(text_of(judge({}, {{.file = "r.json", .report = sample_report()}})), "")
      << "a report of a lane that no policy names is welcome";
}

TEST(Policy, names_the_one_demand_that_is_not_met) {
  struct Row {
    std::string refusal;
    std::function<void(LaneFloor&)> demand_more;
  };
  const std::vector<Row> rows = {
      {"r.json: scenarios: 3 run, but the policy demands 4\n",
       [](LaneFloor& lane) { lane.unnamed.scenarios = 4; }},
      {"r.json: skipped: 1 skipped, but the policy allows 0\n",
       [](LaneFloor& lane) { lane.unnamed.skipped = 0; }},
      {"r.json: determinism: 3 runs doubled, but the policy demands 4\n",
       [](LaneFloor& lane) { lane.runs_doubled = 4; }},
      {"r.json: properties: 30 random cases, but the policy demands 31\n",
       [](LaneFloor& lane) { lane.cases = 31; }},
      {"r.json: coverage: 100 timelines searched, but the policy demands 101\n",
       [](LaneFloor& lane) { lane.timelines = 101; }},
      {"r.json: exhaustive: 25 pairs passed with dp_reshardable, but the policy demands 26\n",
       [](LaneFloor& lane) { lane.exhaustive["dp_reshardable"] = 26; }},
      {"r.json: exhaustive: 36 pairs passed with dp_reshardable hsdp, but the policy demands 61\n",
       // 25 + 36: spaces are not added together
       [](LaneFloor& lane) { lane.exhaustive["dp_reshardable hsdp"] = 61; }},
      {"r.json: exhaustive: 0 pairs passed with fully_reshardable, but the policy demands 1\n",
       [](LaneFloor& lane) { lane.exhaustive["fully_reshardable"] = 1; }},
      {"r.json: property another: it is not in the report, but the policy demands it\n",
       [](LaneFloor& lane) { lane.properties["another"] = 0; }},
      {"r.json: mutant another: it is not in the report, but the policy demands it\n",
       [](LaneFloor& lane) { lane.mutants.insert("another"); }},
  };
  for (const auto& row : rows) {
    LaneFloor policy = sample_policy();
    row.demand_more(policy);
    EXPECT_EQ(text_of(judge(policy)), row.refusal);
  }
}

TEST(Policy, is_not_met_by_a_mutant_that_survived) {
  Report report = sample_report();
  report.mutants[0].caught = false;
  report.mutants[0].caught_by.clear();
  EXPECT_FALSE(judge(sample_policy(), report).empty());
  report = sample_report();
  report.mutants[0].caught_by.clear();
  EXPECT_FALSE(judge(sample_policy(), report).empty());
}

TEST(Policy, a_plain_run_is_one_reason_with_the_commands_of_a_full_one) {
  Report report = sample_report();
  run_nothing_twice(report);
  report.properties.clear();
  report.mutants.clear();
  const auto refusals = judge(sample_policy(), report);
  EXPECT_EQ(text_of(refusals),
            "r.json: evidence: is incomplete: nothing was run twice (the policy demands 3), no "
            "property (the policy demands 2), no mutant (the policy demands 2)\n");
  EXPECT_EQ(refusals.at(0).fix.find("complete it: reprise run scenarios --double"), 0U);
}

TEST(Policy, a_known_failure_counts_neither_as_shown_nor_as_demanded) {
  using Kind = KnownFailure::Kind;
  Report report = sample_report();
  report.verdict = report.scenarios[0].verdict = report.properties[0].verdict = Verdict::kFail;
  report.scenarios[0].code = "HANG";
  report.properties[0].counterexample = "proves: Once HANG: a job continues.";
  report.mutants[0].caught = false;
  report.mutants[0].caught_by.clear();
  const auto known = [](Kind kind, const std::string& name, const std::string& code) {
    return KnownFailure{.kind = kind,
                        .name = name,
                        .code = code,
                        .reason = "r",
                        .owner = "o",
                        .expires = *date_named("2026-03-31")};
  };
  const std::vector<KnownFailure> all = {
      known(Kind::kScenario, "one", "HANG"), known(Kind::kProperty, "continuity", "HANG"),
      known(Kind::kMutant, "floor-vs-ceil-chunk", "MUTANT_SURVIVED")};
  const auto lacking = [&](const LaneFloor& lane) {
    return text_of(judge({.lanes = {{ReportLane::kSim, lane}}, .known_failures = all},
                         {{.file = "r.json", .report = report}}));
  };
  LaneFloor lane = sample_policy();
  EXPECT_EQ(lacking(lane), "r.json: properties: 20 random cases, but the policy demands 30\n");
  lane.cases = 20;
  EXPECT_EQ(lacking(lane), "");
  lane.unnamed.scenarios = 4;
  lane.runs_doubled = 4;
  EXPECT_EQ(lacking(lane),
            "r.json: scenarios: 2 run, but the policy demands 3\n"
            "r.json: determinism: 2 runs doubled, but the policy demands 3\n");
}

TEST(Policy, demands_a_report_of_each_of_its_lanes) {
  Demand policy{.lanes = {{ReportLane::kMpi, {}}, {ReportLane::kSim, sample_policy()}}};
  EXPECT_EQ(text_of(judge(policy, {{.file = "r.json", .report = sample_report()}})),
            ": lane mpi: the policy demands a report of it, but none was given\n");
  // A report that can't be read is one reason, and may be of any lane.
  const std::vector<Submission> torn = {{.file = "r.json", .unreadable = "is cut off"}};
  EXPECT_EQ(text_of(judge({.lanes = {{ReportLane::kSim, {}}}}, torn)), "r.json: : is cut off\n");
  EXPECT_EQ(text_of(judge(policy, torn)),
            "r.json: : is cut off\n"
            ": lane mpi: the policy demands a report of it, but none was given\n"
            ": lane sim: the policy demands a report of it, but none was given\n");
}

}  // namespace
}  // namespace reprise::reports::policy_test
