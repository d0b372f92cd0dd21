// Tests that each demand of a release policy refuses a report that does not meet it.

#include "reports/gate/policy.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tests/reports/sample_report.hpp"

namespace reprise::reports::policy_test {
namespace {

const Known kKnown = {.mutants = {"floor-vs-ceil-chunk", "stale-plan"},
                      .properties = {"continuity", "round-trip"}};

/// Returns the policy that the sample report meets exactly.
Policy sample_policy() {
  return {{ReportLane::kSim,
           {.scenarios = 3,
            .skipped = 1,
            .doubled = 3,
            .property_cases = 30,
            .all_properties = true,
            .timelines = 100,
            .all_mutants = true,
            .exhaustive = {{"dp_reshardable", 25}, {"dp_reshardable hsdp", 36}}}}};
}

std::vector<Refusal> judge(const Policy& policy, const Report& report = sample_report(),
                           const Known& known = kKnown) {
  const std::vector<Submission> submissions = {{.file = "r.json", .report = report}};
  return judge_policy(submissions, policy, known);
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
  EXPECT_EQ(text_of(judge({{ReportLane::kSim, {.skipped = 1}}})), "");
}

TEST(Policy, names_the_one_demand_that_is_not_met) {
  struct Row {
    std::string refusal;
    std::function<void(LanePolicy&)> demand_more;
  };
  const std::vector<Row> rows = {
      {"r.json: scenarios: 3 ran, but the policy demands 4\n",
       [](LanePolicy& lane) { lane.scenarios = 4; }},
      {"r.json: skipped: 1 skipped, but the policy allows 0\n",
       [](LanePolicy& lane) { lane.skipped = 0; }},
      {"r.json: determinism: 3 runs doubled, but the policy demands 4\n",
       [](LanePolicy& lane) { lane.doubled = 4; }},
      {"r.json: properties: 30 random cases, but the policy demands 31\n",
       [](LanePolicy& lane) { lane.property_cases = 31; }},
      {"r.json: coverage: 100 random timelines searched, but the policy demands 101\n",
       [](LanePolicy& lane) { lane.timelines = 101; }},
      {"r.json: exhaustive: 25 pairs of layouts passed with dp_reshardable, but the policy demands "
       "26\n",
       [](LanePolicy& lane) { lane.exhaustive["dp_reshardable"] = 26; }},
      {"r.json: exhaustive: 36 pairs of layouts passed with dp_reshardable hsdp, but the policy "
       "demands 61\n",  // 25 + 36: spaces are not added together
       [](LanePolicy& lane) { lane.exhaustive["dp_reshardable hsdp"] = 61; }},
      {"r.json: exhaustive: 0 pairs of layouts passed with fully_reshardable, but the policy "
       "demands 1\n",
       [](LanePolicy& lane) { lane.exhaustive["fully_reshardable"] = 1; }},
  };
  for (const auto& row : rows) {
    Policy policy = sample_policy();
    row.demand_more(policy[ReportLane::kSim]);
    EXPECT_EQ(text_of(judge(policy)), row.refusal);
  }
}

TEST(Policy, demands_that_every_known_mutant_was_caught) {
  Known known = kKnown;
  known.mutants.emplace_back("another");
  const std::string another =
      "r.json: mutants: 1 of 3 were not caught, but the policy demands all: another\n";
  EXPECT_EQ(text_of(judge(sample_policy(), sample_report(), known)), another);
  Report report = sample_report();
  report.mutants[0].caught = false;
  report.mutants[1].caught_by.clear();
  EXPECT_EQ(text_of(judge(sample_policy(), report)),
            "r.json: mutants: 2 of 2 were not caught, but the policy demands all: "
            "floor-vs-ceil-chunk, stale-plan\n");
  EXPECT_NE(text_of(judge(sample_policy(), sample_report(), {.mutants = {}, .properties = {}})),
            "");
}

TEST(Policy, demands_every_known_property) {
  Known known = kKnown;
  known.properties.emplace_back("another");
  EXPECT_EQ(text_of(judge(sample_policy(), sample_report(), known)),
            "r.json: properties: another is missing, but the policy demands all\n");
}

TEST(Policy, a_known_failure_counts_neither_as_shown_nor_as_demanded) {
  using Kind = KnownFailure::Kind;
  Report report = sample_report();
  report.verdict = report.scenarios[0].verdict = report.properties[0].verdict = Verdict::kFail;
  report.scenarios[0].code = "HANG";
  report.properties[0].counterexample = "proves: Once HANG: a job continues.";
  report.mutants[0].caught = false;
  report.mutants[0].caught_by.clear();
  const std::vector<Submission> submissions = {{.file = "r.json", .report = report}};
  const auto known = [](Kind kind, const std::string& name, const std::string& code) {
    return KnownFailure{.kind = kind,
                        .name = name,
                        .code = code,
                        .reason = "r",
                        .owner = "o",
                        .expires = *date_named("2026-03-31")};
  };
  const GateRuling ruling = judge_gate(
      submissions, {},
      {.known_failures = {known(Kind::kScenario, "one", "HANG"),
                          known(Kind::kProperty, "continuity", "HANG"),
                          known(Kind::kMutant, "floor-vs-ceil-chunk", "MUTANT_SURVIVED")},
       .today = *date_named("2026-03-31")});
  ASSERT_EQ(ruling.accepted_failures.size(), 3U);
  const auto lacking = [&](const LanePolicy& lane) {
    return text_of(
        judge_policy(ruling.settled, {{ReportLane::kSim, lane}}, kKnown, ruling.accepted_failures));
  };
  LanePolicy lane = sample_policy()[ReportLane::kSim];
  EXPECT_EQ(lacking(lane), "r.json: properties: 20 random cases, but the policy demands 30\n");
  lane.property_cases = 20;
  EXPECT_EQ(lacking(lane), "");
  lane.scenarios = 4;
  lane.doubled = 4;
  EXPECT_EQ(lacking(lane),
            "r.json: scenarios: 2 ran, but the policy demands 3\n"
            "r.json: determinism: 2 runs doubled, but the policy demands 3\n");
}

TEST(Policy, demands_a_report_of_each_of_its_lanes) {
  Policy policy = sample_policy();
  policy[ReportLane::kMpi] = {};
  EXPECT_EQ(text_of(judge(policy)),
            ": lane mpi: the policy demands a report of it, but none was given\n");
  // A report that can't be read is one reason, which judge_gate gives.
  const std::vector<Submission> torn = {{.file = "r.json", .unreadable = "is cut off"}};
  EXPECT_EQ(text_of(judge_policy(torn, sample_policy(), kKnown)), "");
  EXPECT_EQ(text_of(judge_policy(torn, policy, kKnown)),
            ": lane mpi: the policy demands a report of it, but none was given\n"
            ": lane sim: the policy demands a report of it, but none was given\n");
}

}  // namespace
}  // namespace reprise::reports::policy_test
