// Tests that a known failure excuses itself alone, and only for as long as it is as known.

#include "reports/gate/known_failures.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "reports/gate/gate.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports::known_failures_test {
namespace {

using Kind = KnownFailure::Kind;

Date day(const std::string& text) { return date_named(text).value(); }

/// Returns the sample report with three failures: a scenario, a property and a mutant.
Report failing_report() {
  Report report = sample_report();
  report.scenarios[0].verdict = Verdict::kFail;
  report.scenarios[0].code = "ZERO_FILL";
  report.scenarios[0].reason = "zeros";
  report.properties[0].verdict = Verdict::kFail;
  report.properties[0].counterexample = "proves: \"Once HANG: a job continues.\"\njob: {}\n";
  report.mutants[0].caught = false;
  report.mutants[0].caught_by.clear();
  report.verdict = Verdict::kFail;
  return report;
}

KnownFailure known(Kind kind, const std::string& name, const std::string& code) {
  return {.kind = kind,
          .name = name,
          .code = code,
          .reason = "the store loses it",
          .owner = "jane",
          .expires = day("2026-03-31"),
          .place = "policy.yaml:7"};
}

std::vector<KnownFailure> all_known() {
  return {known(Kind::kScenario, "one", "ZERO_FILL"), known(Kind::kProperty, "continuity", "HANG"),
          known(Kind::kMutant, "floor-vs-ceil-chunk", "MUTANT_SURVIVED")};
}

Floors sample_baseline() {
  const Report report = sample_report();
  return baseline_of({&report, 1});
}

GateRuling rule(const std::vector<Submission>& submissions,
                const std::vector<KnownFailure>& failures, const std::string& today,
                const Floors& baseline = sample_baseline()) {
  const std::vector<Demand> demands = {{.generated = true, .lanes = baseline},
                                       {.known_failures = failures}};
  return judge_gate(submissions, demands, {.commit = kSampleCommit, .today = day(today)});
}

GateRuling rule(const Report& report, const std::vector<KnownFailure>& failures = all_known(),
                const std::string& today = "2026-03-31") {
  return rule({{.file = "r.json", .report = report}}, failures, today);
}

std::string text_of(const GateRuling& ruling) {
  std::string text;
  for (const auto& refusal : ruling.refusals) {
    text += refusal.file + ": " + refusal.subject + ": " + refusal.reason + '\n';
    EXPECT_FALSE(refusal.fix.empty()) << text;
  }
  return text;
}

void expect_said(const GateRuling& ruling, const std::string& words) {
  EXPECT_NE(text_of(ruling).find(words), std::string::npos) << words << "\nfound:\n"
                                                            << text_of(ruling);
}

TEST(KnownFailures, are_accepted_until_their_last_day_and_listed_each_time) {
  const GateRuling ruling = rule(failing_report());
  EXPECT_TRUE(ruling.accepted()) << text_of(ruling);
  ASSERT_EQ(ruling.accepted_failures.size(), 3U);
  EXPECT_EQ(ruling.accepted_failures[0].file, "r.json");
  EXPECT_EQ(ruling.accepted_failures[0].failure.name, "one");
  const auto json = nlohmann::json::parse(to_json(ruling, kSampleCommit));
  EXPECT_EQ(json["today"], "2026-03-31");
  EXPECT_EQ(json["known_failures"][1], (nlohmann::json{{"file", "r.json"},
                                                       {"lane", "sim"},
                                                       {"kind", "property"},
                                                       {"name", "continuity"},
                                                       {"code", "HANG"},
                                                       {"reason", "the store loses it"},
                                                       {"owner", "jane"},
                                                       {"expires", "2026-03-31"}}));
}

TEST(KnownFailures, a_property_is_known_by_code_or_formerly_by_its_smallest_case) {
  Report report = failing_report();
  EXPECT_TRUE(rule(report).accepted()) << "its smallest case says HANG";
  report.properties[0].code = "HANG";
  report.properties[0].counterexample = "job: {}\n";
  EXPECT_TRUE(rule(report).accepted()) << text_of(rule(report));
  report.properties[0].code = "ZERO_FILL";
  report.properties[0].counterexample = "proves: \"Once HANG: a job continues.\"\n";
  expect_said(rule(report), "fails with ZERO_FILL, but the known code is HANG");
}

TEST(KnownFailures, show_nothing_in_a_new_baseline) {
  const GateRuling ruling = rule(failing_report());
  const LaneFloor& shown = ruling.shown.at(ReportLane::kSim);
  EXPECT_FALSE(shown.scenarios.contains("one"));
  EXPECT_FALSE(shown.properties.contains("continuity"));
  EXPECT_TRUE(shown.properties.contains("round-trip"));
  EXPECT_FALSE(shown.mutants.contains("floor-vs-ceil-chunk"));
  EXPECT_EQ(shown.runs_doubled, 2U);
  const std::vector<Submission> later = {{.file = "r.json", .report = failing_report()}};
  const auto ruled = rule(later, all_known(), "2026-03-01", ruling.shown);
  EXPECT_TRUE(ruled.accepted()) << text_of(ruled);
}

TEST(KnownFailures, one_that_expired_is_refused_and_so_is_what_it_excused) {
  const GateRuling ruling = rule(failing_report(), all_known(), "2026-04-01");
  EXPECT_TRUE(ruling.accepted_failures.empty());
  expect_said(ruling,
              "policy.yaml:7: known failure one: expired on 2026-03-31, and today is 2026-04-01");
  expect_said(ruling, "policy.yaml:7: known failure property continuity: expired");
  expect_said(ruling, "policy.yaml:7: known failure mutant floor-vs-ceil-chunk: expired");
  expect_said(ruling, "r.json: one: fail: ZERO_FILL: zeros");
}

struct Row {
  std::string words;
  std::function<void(Report&)> spoil;
};

void expect_all_refused(const std::vector<Row>& rows) {
  for (const auto& row : rows) {
    Report report = failing_report();
    row.spoil(report);
    const GateRuling ruling = rule(report);
    EXPECT_FALSE(ruling.accepted()) << row.words;
    expect_said(ruling, row.words);
  }
}

TEST(KnownFailures, what_is_not_as_known_is_refused_with_a_line_of_its_own) {
  const std::string one = "policy.yaml:7: known failure one: ";
  const std::string property = "policy.yaml:7: known failure property continuity: ";
  const std::string mutant = "policy.yaml:7: known failure mutant floor-vs-ceil-chunk: ";
  const std::vector<Row> rows = {
      {one + "passes now", [](Report& r) { r.scenarios[0] = sample_scenario("one"); }},
      {one + "fails with HANG, but the known code is ZERO_FILL",
       [](Report& r) { r.scenarios[0].code = "HANG"; }},
      {one + "matches nothing: the report of lane sim has no such scenario",
       [](Report& r) { r.scenarios[0].name = "uno"; }},
      {one + "matches nothing: no report of lane sim was given",
       [](Report& r) { r.lane = ReportLane::kMpi; }},
      {one + "was not run, so it is unknown whether it still fails",
       [](Report& r) {
         r.scenarios[0].verdict = Verdict::kNotRun;
         r.skipped.push_back({"one", "no time"});
       }},
      {one + "occurs in the report 2 times",
       [](Report& r) { r.scenarios.push_back(r.scenarios[0]); }},
      {property + "passes now",
       [](Report& r) {
         r.properties[0].verdict = Verdict::kPass;
         r.properties[0].counterexample.reset();
       }},
      {property + "fails with no code, but the known code is HANG",
       [](Report& r) { r.properties[0].counterexample = "dp=1"; }},
      {property + "fails with IO, but the known code is HANG",
       [](Report& r) {
         r.properties[0].counterexample = "proves: 'Once IO: a job continues.'\nproves: Once HANG:";
       }},
      {property + "matches nothing", [](Report& r) { r.properties[0].name = "other"; }},
      {mutant + "passes now", [](Report& r) { r.mutants[0] = sample_report().mutants[0]; }},
      {mutant + "passes now",  // contradicts itself
       [](Report& r) { r.mutants[0].caught_by = sample_report().mutants[0].caught_by; }},
      {mutant + "matches nothing", [](Report& r) { r.mutants[0].name = "other"; }},
      {mutant + "fails with VALIDATOR_VACUOUS, but the known code is MUTANT_SURVIVED",
       [](Report& r) {
         r.mutants[1].caught = false;
         r.mutants[1].caught_by.clear();
       }},
  };
  expect_all_refused(rows);
}

TEST(KnownFailures, an_entry_that_repeats_another_is_refused) {
  auto failures = all_known();
  failures.push_back(failures.front());
  expect_said(rule(failing_report(), failures),
              "known failure one: is already covered by an earlier entry");
}

TEST(KnownFailures, hide_nothing_else_of_the_same_report) {
  const std::vector<Row> rows = {
      {"r.json: two: fail: HANG",
       [](Report& r) {
         r.scenarios[1].verdict = Verdict::kFail;
         r.scenarios[1].code = "HANG";
       }},
      {"r.json: two: claims pass, but rank 0 has 1 element with different bits",
       [](Report& r) { r.scenarios[1].ranks[0].bit_mismatches = 1; }},
      {"r.json: two: it is in the baseline but not in the report",
       [](Report& r) {
         r.scenarios.erase(r.scenarios.begin() + 1);
         r.planned = 3;
       }},
      {"determinism: 1 of 2 doubled runs differed the second time",
       [](Report& r) { take_another_course(r.scenarios[1]); }},
      {"determinism: 1 runs doubled, but the baseline has 2",
       [](Report& r) { r.scenarios[1].doubled = false; }},
      {"the verdict is inconclusive", [](Report& r) { r.verdict = Verdict::kInconclusive; }},
      {"the verdict is pass, but its own entries make it fail",
       [](Report& r) { r.verdict = Verdict::kPass; }},
      {"lanes.planned: says 4, but the report holds 3 scenarios", [](Report& r) { ++r.planned; }},
      {"lanes.planned: says 3, but the report holds 4 scenarios",
       [](Report& r) {
         r.skipped.push_back({"one", "no time"});
       }},
      {"property continuity: says that dp 2 came up in 11 cases of 10",
       [](Report& r) { r.properties[0].distribution["dp"]["2"] = 11; }},
      {"property round-trip: 19 cases, but the baseline has 20",
       [](Report& r) { --r.properties[1].cases; }},
      {"mutants: VALIDATOR_VACUOUS",
       [](Report& r) {
         r.mutants[1].caught = false;
         r.mutants[1].caught_by.clear();
       }},
      {"r.json: matrix: it does not show that floor-vs-ceil-chunk is caught",
       [](Report& r) { r.matrix.reset(); }},
      {"r.json: mutant: the run was made with the mutant x", [](Report& r) { r.mutant = "x"; }},
      {"interrupted: the run was interrupted", [](Report& r) { r.interrupted = true; }},
  };
  expect_all_refused(rows);
}

TEST(KnownFailures, one_that_took_another_course_is_counted_once) {
  Report report = failing_report();
  take_another_course(report.scenarios[0]);
  auto failures = all_known();
  failures[0].code = "NOT_DETERMINISTIC";
  EXPECT_TRUE(rule(report, failures).accepted()) << text_of(rule(report, failures));
  take_another_course(report.scenarios[1]);
  expect_said(rule(report, failures), "determinism: 1 of 2 doubled runs differed the second time");
}

TEST(KnownFailures, excuse_only_their_own_lane) {
  Report mpi = failing_report();
  mpi.lane = ReportLane::kMpi;
  const std::vector<Submission> both = {{.file = "sim.json", .report = sample_report()},
                                        {.file = "mpi.json", .report = mpi}};
  auto failures = all_known();
  failures.resize(1);
  const GateRuling ruling = rule(both, failures, "2026-03-01");
  expect_said(ruling, "policy.yaml:7: known failure one: passes now");
  expect_said(ruling, "mpi.json: one: fail: ZERO_FILL");
  failures[0].lane = ReportLane::kMpi;
  EXPECT_EQ(rule(both, failures, "2026-03-01").accepted_failures.size(), 1U);
}

TEST(KnownFailures, where_the_report_is_unreadable_that_is_the_only_reason) {
  const std::vector<Submission> torn = {{.file = "r.json", .unreadable = "is cut off"}};
  EXPECT_EQ(text_of(rule(torn, all_known(), "2026-03-01")), "r.json: : is cut off\n");
}

TEST(KnownFailures, a_date_is_a_day_of_the_calendar_written_in_full) {
  for (const char* text :
       {"", "2026-1-01", "2026-02-30", "2025-02-29", "2026-13-01", "2026-00-10", "2026-01-00",
        "2026-01-01 ", "2026/01/01", "+026-01-01", "2026-01-1x", "2026-01-011", "-026-01-01"}) {
    EXPECT_FALSE(date_named(text)) << text;
  }
  for (const char* text : {"2026-01-01", "2024-02-29", "2026-12-31", "0001-01-01"}) {
    EXPECT_EQ(to_text(day(text)), text);
  }
}

}  // namespace
}  // namespace reprise::reports::known_failures_test
