// Tests the gate with a table of damaged reports, each with the expected text of its refusal.

#include "reports/gate/gate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/reports/sample_report.hpp"

namespace reprise::reports::gate_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Floors sample_baseline() {
  const Report report = sample_report();
  return baseline_of({&report, 1});
}

GateRuling rule(const std::vector<Submission>& submissions, const Floors& baseline,
                const GateOptions& options = {.commit = kSampleCommit}) {
  const Demand demand{.generated = true, .lanes = baseline};
  return judge_gate(submissions, {&demand, 1}, options);
}

GateRuling rule(const Report& report) {
  return rule({{.file = "r.json", .report = report}}, sample_baseline());
}

/// Returns all refusals as "file: subject: reason", one per line.
std::string text_of(const GateRuling& ruling) {
  std::string text;
  for (const auto& refusal : ruling.refusals) {
    text += refusal.file + ": " + refusal.subject + ": " + refusal.reason + '\n';
  }
  return text;
}

void expect_refused(const GateRuling& ruling, const std::string& words) {
  EXPECT_FALSE(ruling.accepted()) << words;
  EXPECT_NE(text_of(ruling).find(words), std::string::npos) << words << "\nfound:\n"
                                                            << text_of(ruling);
  for (const auto& refusal : ruling.refusals) {
    EXPECT_FALSE(refusal.reason.empty()) << words;
    EXPECT_FALSE(refusal.fix.empty()) << words;
  }
}

struct Row {
  std::string words;
  std::function<void(Report&)> spoil;
};

void expect_all_refused(const std::vector<Row>& rows) {
  for (const auto& row : rows) {
    Report report = sample_report();
    row.spoil(report);
    expect_refused(rule(report), row.words);
  }
}

ScenarioResult& first(Report& report) { return report.scenarios[0]; }
RankResult& rank(Report& report) { return report.scenarios[0].ranks[0]; }

TEST(Gate, accepts_the_report_that_shows_all_of_the_baseline) {
  const GateRuling ruling = rule(sample_report());
  EXPECT_TRUE(ruling.accepted()) << text_of(ruling);
  ASSERT_EQ(ruling.lanes.size(), 1U);
  EXPECT_EQ(ruling.lanes[0].shown.elements, 400U);
  EXPECT_EQ(ruling.lanes[0].demanded->elements, 400U);
}

/// Compares the report with a baseline from an earlier commit. The report is allowed to contain
/// more results than the baseline.
GateRuling rule_later(const Report& report) {
  Report earlier = sample_report();
  earlier.project.commit = std::string(40, 'a');
  return rule({{.file = "r.json", .report = report}}, baseline_of({&earlier, 1}));
}

TEST(Gate, accepts_what_shows_more) {
  const std::function<void(Report&)> rows[] = {
      [](Report& r) { ++rank(r).elements; },
      [](Report& r) { first(r).event_hash = "another program's"; },
      [](Report& r) {  // results may differ if the seed differs
        r.seed = 2;
        first(r).content_digest = "another";
        first(r).lives[1].outcome = LifeOutcome::kFellBack;
      },
      [](Report& r) {
        r.scenarios.push_back(sample_scenario("new"));
        ++r.planned;
      },
      [](Report& r) {
        r.properties.push_back({.name = "p", .cases = 1, .verdict = Verdict::kPass});
      },
      [](Report& r) { ++r.properties[0].cases; },
      [](Report& r) {  // was skipped in the baseline
        r.scenarios[3] = sample_scenario("skipped");
        r.skipped.clear();
      },
      [](Report& r) { r.skipped[0].reason = "another reason"; },
      [](Report& r) {
        r.mutants.push_back({.name = "m", .caught = true, .caught_by = {{"one", "ZERO_FILL", ""}}});
      },
  };
  for (const auto& improve : rows) {
    Report report = sample_report();
    improve(report);
    const GateRuling ruling = rule_later(report);
    EXPECT_TRUE(ruling.accepted()) << &improve - rows << '\n' << text_of(ruling);
  }
}

TEST(Gate, what_one_program_with_one_seed_can_not_show) {
  expect_all_refused({
      {"one: the number of elements is '201', but the baseline has '200'",
       [](Report& r) { ++rank(r).elements; }},
      {"one: the number of tensors and objects is '7'", [](Report& r) { ++rank(r).compared; }},
      {"one: the event hash is '0', but the baseline has '00ff00ff00ff00ff'",
       [](Report& r) { first(r).event_hash = "0"; }},
      {"one: the content digest is '0', but the baseline has 'd1ge57'",
       [](Report& r) { first(r).content_digest = "0"; }},
  });
}

TEST(Gate, a_refused_life_has_a_course_without_a_digest) {
  Report refused = sample_report();
  first(refused).lives[1].outcome = LifeOutcome::kRefused;
  first(refused).lives[1].code = "TORN_FILE";
  first(refused).lives[1].exit_code = 1;
  first(refused).content_digest.clear();
  Report earlier = refused;
  earlier.project.commit = std::string(40, 'a');
  const auto rule_beside = [&earlier](const Report& report) {
    return rule({{.file = "r.json", .report = report}}, baseline_of({&earlier, 1}));
  };
  EXPECT_TRUE(rule_beside(refused).accepted()) << text_of(rule_beside(refused));
  const std::vector<Row> rows = {
      {"one: its outcome is 'ran, refused by IO', but the baseline has 'ran, refused by TORN_FILE'",
       [](Report& r) { first(r).lives[1].code = "IO"; }},
      {"one: its outcome is 'ran, fell_back', but the baseline has 'ran, refused by TORN_FILE'",
       [](Report& r) {
         first(r).lives[1].outcome = LifeOutcome::kFellBack;
         first(r).lives[1].exit_code = 0;
         first(r).lives[1].code.clear();
       }},
      {"one: the content digest is '0', but the baseline has ''",
       [](Report& r) { first(r).content_digest = "0"; }},
  };
  for (const auto& row : rows) {
    Report report = refused;
    row.spoil(report);
    expect_refused(rule_beside(report), row.words);
  }
}

TEST(Gate, what_one_seed_can_not_show_at_any_commit) {
  const std::vector<Row> rows = {
      {"one: the content digest is '0', but the baseline has 'd1ge57'",
       [](Report& r) { first(r).content_digest = "0"; }},
      {"one: its outcome is 'ran, fell_back', but the baseline has ''",
       [](Report& r) { first(r).lives[1].outcome = LifeOutcome::kFellBack; }},
      {"one: its outcome is 'ran, refused by CHECKSUM', but the baseline has ''",
       [](Report& r) {
         first(r).lives[1].outcome = LifeOutcome::kRefused;
         first(r).lives[1].code = "CHECKSUM";
       }},
      {"one: its outcome is 'ran, continued; crash fired', but the baseline has ''",
       [](Report& r) { first(r).faults[0].must_fire = false; }},
  };
  for (const auto& row : rows) {
    Report report = sample_report();
    row.spoil(report);
    expect_refused(rule_later(report), row.words);
  }
}

TEST(Gate, where_a_lane_has_no_event_hashes_its_course_is_left_to_it) {
  Report report = sample_report();
  first(report).event_hash.clear();
  const Floors baseline = baseline_of({&report, 1});
  first(report).content_digest = "another";
  first(report).lives[1].outcome = LifeOutcome::kFellBack;
  EXPECT_TRUE(rule({{.file = "r.json", .report = report}}, baseline).accepted());
}

TEST(Gate, a_run_with_a_mutant_or_an_interruption_shows_nothing) {
  expect_all_refused({
      {"mutant: the run was made with the mutant stale-plan switched on",
       [](Report& r) { r.mutant = "stale-plan"; }},
      {"interrupted: the run was interrupted", [](Report& r) { r.interrupted = true; }},
      {"its own entries make it inconclusive", [](Report& r) { r.interrupted = true; }},
  });
}

TEST(Gate, all_that_an_interrupted_run_left_out_is_one_reason) {
  Report report = sample_report();
  report.interrupted = true;
  report.verdict = Verdict::kInconclusive;
  run_nothing_twice(report);
  report.properties.clear();
  const auto not_run = [&report](const std::string& name) {
    report.skipped.push_back({name, kNotRunInterrupted});
    return ScenarioResult{.name = name, .verdict = Verdict::kNotRun, .reason = kNotRunInterrupted};
  };
  for (std::size_t i = 0; i < 3; ++i) report.scenarios[i] = not_run(report.scenarios[i].name);
  report.scenarios.push_back(not_run("later"));
  report.planned = 5;
  const GateRuling ruling = rule({{.file = "out/report.json", .report = report}}, sample_baseline(),
                                 {.commit = kSampleCommit, .program = "reprise"});
  EXPECT_EQ(text_of(ruling),
            "out/report.json: interrupted: the run was interrupted: 4 scenarios were not run: one, "
            "two, cut-short and 1 more\n");
  ASSERT_EQ(ruling.refusals.size(), 1U);
  EXPECT_EQ(ruling.refusals[0].fix,
            "run the lane to its end: reprise run scenarios --double --report out && reprise "
            "search properties --report out && reprise mutants scenarios --report out");
}

TEST(Gate, what_failed_before_an_interruption_is_told_too) {
  Report report = sample_report();
  report.interrupted = true;
  report.verdict = Verdict::kFail;
  first(report).verdict = Verdict::kFail;
  first(report).code = "ZERO_FILL";
  EXPECT_EQ(text_of(rule(report)),
            "r.json: : the verdict is fail\n"
            "r.json: interrupted: the run was interrupted\n"
            "r.json: one: fail: ZERO_FILL\n");
}

TEST(Gate, that_a_mutant_was_on_is_reason_enough) {
  Report report = sample_report();
  report.mutant = "stale-plan";
  report.verdict = Verdict::kFail;
  first(report).verdict = Verdict::kFail;
  first(report).content_digest = "another";
  rank(report).elements = 1;
  EXPECT_EQ(text_of(rule(report)),
            "r.json: mutant: the run was made with the mutant stale-plan switched on\n");
}

TEST(Gate, a_report_whose_verdict_is_no_pass) {
  using enum Verdict;
  expect_all_refused({
      {"the verdict is fail", [](Report& r) { r.verdict = kFail; }},
      {"the verdict is inconclusive", [](Report& r) { r.verdict = kInconclusive; }},
      {"the verdict is not_run", [](Report& r) { r.verdict = kNotRun; }},
      {"its own entries make it fail", [](Report& r) { first(r).verdict = kFail; }},
      {"its own entries make it inconclusive", [](Report& r) { first(r).verdict = kInconclusive; }},
      {"its own entries make it not_run",
       [](Report& r) {
         r.scenarios.clear();
         r.properties.clear();
         r.mutants.clear();
         r.matrix.reset();
         r.exhaustive.clear();
         r.coverage.reset();
       }},
      {"its own entries make it fail",
       [](Report& r) {
         r.matrix->rows[0].caught.clear();
         r.matrix->rows[0].cells = "p.";
       }},
      {"its own entries make it inconclusive",
       [](Report& r) {
         r.matrix->rows[0].caught.clear();
         r.matrix->rows[0].cells = "n.";
       }},
      {"its own entries make it fail", [](Report& r) { r.exhaustive[0].parts[0].wrong = 1; }},
      {"its own entries make it inconclusive", [](Report& r) { r.exhaustive[0].parts.pop_back(); }},
      {"its own entries make it fail", [](Report& r) { r.coverage->findings[0].status = "new"; }},
      {"its own entries make it inconclusive", [](Report& r) { r.coverage->marks[0].count = 0; }},
      {"its own entries make it fail", [](Report& r) { r.mutants[0].caught = false; }},
      {"its own entries make it fail", [](Report& r) { r.properties[0].verdict = kFail; }},
      {"its own entries make it fail", [](Report& r) { take_another_course(first(r)); }},
      {"one: fail: ZERO_FILL: zeros",
       [](Report& r) {
         first(r).verdict = kFail;
         first(r).code = "ZERO_FILL";
         first(r).reason = "zeros";
       }},
      {"one: inconclusive", [](Report& r) { first(r).verdict = kInconclusive; }},
      {"one: was not run but is not listed as skipped",
       [](Report& r) { first(r).verdict = kNotRun; }},
  });
}

TEST(Gate, another_commit_or_a_changed_tree) {
  struct Case {
    std::string of_report;
    std::string in_question;
    bool same;
  };
  const std::string commit = kSampleCommit;
  const Case cases[] = {
      {commit, commit, true},
      {commit, commit.substr(0, 7), true},
      {commit, commit.substr(0, 6), false},
      {commit, "", false},
      {commit, commit + "0", false},
      {commit, "1" + commit.substr(1), false},
      {commit, commit.substr(1), false},
      {commit.substr(0, 12), commit, false},
      {"unknown", commit, false},
      {"", "", false},
      {"", commit, false},
  };
  for (const auto& [of_report, in_question, same] : cases) {
    Report report = sample_report();
    report.project.commit = of_report;
    const auto ruling =
        rule({{.file = "r.json", .report = report}}, sample_baseline(), {.commit = in_question});
    EXPECT_EQ(ruling.accepted(), same) << of_report << " " << in_question << text_of(ruling);
    if (!same) expect_refused(ruling, "project.commit: the report is of commit '" + of_report);
  }
  Report dirty = sample_report();
  dirty.project.dirty = true;
  expect_refused(rule(dirty), "project.dirty: the tree had uncommitted changes");
  EXPECT_TRUE(rule({{.file = "r.json", .report = dirty}}, sample_baseline(),
                   {.commit = kSampleCommit, .allow_dirty = true})
                  .accepted());
}

TEST(Gate, where_no_bound_was_declared_peaks_are_not_judged) {
  Report report = sample_report();
  first(report).bound_bytes.reset();
  first(report).peak_bytes.load = 5;
  EXPECT_TRUE(check_evidence(report).empty());
}

TEST(Gate, a_pass_that_its_ranks_do_not_bear_out) {
  const std::string pass = "one: claims pass, but ";
  expect_all_refused({
      {pass + "has no evidence from any rank", [](Report& r) { first(r).ranks.clear(); }},
      {pass + "held 3 bytes in a save, and declared 2",
       [](Report& r) { first(r).peak_bytes.snapshot = 3; }},
      {pass + "held 9 bytes in a save, and declared 2",
       [](Report& r) { first(r).peak_bytes.stage = 9; }},
      {pass + "held 5 bytes in a load, and declared 4",
       [](Report& r) { first(r).peak_bytes.load = 5; }},
      {pass +
           "held 3 bytes in a save or load by a rank without any part of a tensor, and declared 2",
       [](Report& r) { first(r).peak_bytes.empty = 3; }},
      {pass + "has the code ZERO_FILL", [](Report& r) { first(r).code = "ZERO_FILL"; }},
      {pass + "gives a reason: zeros", [](Report& r) { first(r).reason = "zeros"; }},
      {pass + "has a life that failed: IO",
       [](Report& r) {
         first(r).lives[0].outcome = LifeOutcome::kFailed;
         first(r).lives[0].code = "IO";
       }},
      {pass + "says that rank 0 compared 18,446,744,073,709,551,615 elements, which no run does",
       [](Report& r) { rank(r).elements = std::numeric_limits<std::uint64_t>::max(); }},
      {pass + "lists rank 0 twice", [](Report& r) { first(r).ranks[1].rank = 0; }},
      {pass + "lists rank 4 of a world of 4", [](Report& r) { first(r).ranks[2].rank = 4; }},
      {pass + "lists rank -1", [](Report& r) { first(r).ranks[2].rank = -1; }},
      {pass + "lists rank 3, but not all before it", [](Report& r) { first(r).ranks[2].rank = 3; }},
      {pass + "lists rank 2, but not all before it",
       [](Report& r) { first(r).ranks.erase(first(r).ranks.begin()); }},
      {pass + "compared nothing on any rank",
       [](Report& r) {
         for (auto& one : first(r).ranks) one = {.rank = one.rank, .owns = false};
       }},
      {pass + "rank 1 owns state but compared nothing",
       [](Report& r) {
         rank(r).elements += first(r).ranks[1].elements;
         rank(r).compared += first(r).ranks[1].compared;
         first(r).ranks[1].elements = first(r).ranks[1].compared = 0;
       }},
      {pass + "rank 2 owns state but compared nothing",
       [](Report& r) { first(r).ranks[2].owns = true; }},
      {pass + "rank 0 owns nothing but compared 100 elements",
       [](Report& r) { rank(r).owns = false; }},
      {pass + "rank 0 compared 100 elements but no tensor",
       [](Report& r) { rank(r).compared = 0; }},
      {pass + "rank 0 has 1 element with different bits",
       [](Report& r) { rank(r).bit_mismatches = 1; }},
      {pass + "rank 2 has 9 elements with different bits",
       [](Report& r) { first(r).ranks[2].bit_mismatches = 9; }},
      {pass + "rank 0 has max_delta 1e-300", [](Report& r) { rank(r).max_delta = 1e-300; }},
      {pass + "rank 0 has max_delta -1", [](Report& r) { rank(r).max_delta = -1; }},
      {pass + "rank 0 has max_delta nan", [](Report& r) { rank(r).max_delta = kNan; }},
      {pass + "rank 0 has max_delta inf", [](Report& r) { rank(r).max_delta = kInfinity; }},
      {pass + "rank 1 has max_delta nan", [](Report& r) { first(r).ranks[1].max_delta = kNan; }},
      {"(and 1 further rank)",
       [](Report& r) { rank(r).max_delta = first(r).ranks[1].max_delta = 1; }},
      {pass + "rank 0 has metrics that are not finite",
       [](Report& r) { rank(r).metrics_finite = false; }},
      {pass + "rank 0 did not request w",
       [](Report& r) { rank(r).not_requested.emplace_back("w"); }},
      {pass + "rank 0 did not request optional", [](Report& r) { rank(r).excused = {"new"}; }},
      {pass + "rank 0 requested keys that are not in the checkpoint: w",
       [](Report& r) { rank(r).not_stored.emplace_back("w"); }},
      {pass + "rank 0 found a different shape for w",
       [](Report& r) { rank(r).shape_mismatches = {"w"}; }},
      {pass + "rank 0 found a different dtype for w",
       [](Report& r) { rank(r).dtype_mismatches = {"w"}; }},
  });
}

TEST(Gate, a_pass_that_its_course_does_not_bear_out) {
  const std::string pass = "one: claims pass, but ";
  const auto point = [](Report& r) -> TrainingPoint& { return first(r).trajectory[0]; };
  expect_all_refused({
      {pass + "diverged from the uninterrupted run at step 1",
       [&](Report& r) { point(r).loss = 1; }},
      {pass + "diverged from the uninterrupted run", [&](Report& r) { point(r).lr = 1; }},
      {pass + "diverged from the uninterrupted run", [&](Report& r) { point(r).loss_scale = 1; }},
      {pass + "diverged from the uninterrupted run",
       [&](Report& r) { point(r).uninterrupted_loss = kNan; }},
      {pass + "has metrics that are not finite at step 1",
       [&](Report& r) {
         point(r).loss = kInfinity;
         point(r).uninterrupted_loss = kInfinity;
       }},
      {pass + "has metrics that are not finite at step 2",
       [](Report& r) { first(r).trajectory[1].loss_scale = kNan; }},
      {pass + "planned a fault 'crash' on rank 1 that never fired",
       [](Report& r) { first(r).faults[0].fired = false; }},
      {pass + "names a first difference: w",
       [](Report& r) { first(r).first_difference = FirstDifference{.key = "w"}; }},
      {pass + "says that the program crashed in it", [](Report& r) { first(r).crashed = true; }},
      {pass + "was retried, which only the lane program does",
       [](Report& r) {
         first(r).earlier_tries = {{.code = "HANG", .reason = "late", .seconds = 0.01}};
       }},
      {pass + "was retried without a code for the first try",
       [](Report& r) {
         r.lane = ReportLane::kProgram;
         first(r).earlier_tries = {{.reason = "late", .seconds = 0.01}};
       }},
      {pass + "took less time than its earlier tries",
       [](Report& r) {
         r.lane = ReportLane::kProgram;
         first(r).earlier_tries = {{.code = "HANG", .seconds = first(r).seconds + 1}};
       }},
  });
}

TEST(Gate, what_programs_of_others_do_is_no_contradiction) {
  Report report = sample_report();
  report.lane = ReportLane::kProgram;
  report.mutants.clear();
  ScenarioResult& result = first(report);
  result.lives[0].exit_code = 75;  // they choose their exit codes
  result.lives[0].layout = "tp8";  // the world is that of the life compared
  result.layouts[0] = "tp8";
  result.faults[0].rank = -1;  // of the rank whose call it is
  const auto rule_on_program = [&report] {
    return rule({{.file = "r.json", .report = report}}, baseline_of({&report, 1}));
  };
  EXPECT_TRUE(rule_on_program().accepted()) << text_of(rule_on_program());
  result.lives[0].exit_code = 139;
  expect_refused(rule_on_program(), "has the outcome 'ran', with the exit code 139");
  report.lane = ReportLane::kSim;
  result.lives[0].exit_code = 0;
  expect_refused(rule_on_program(), "which has more ranks than the world of 4");
}

TEST(Gate, what_a_command_loads_is_noted_by_nobody) {
  Report report = sample_report();
  first(report).generations = {{.step = 2, .life = 0, .state = "kept"}};
  expect_refused(rule(report),
                 "loaded step 2, but the last life loaded no checkpoint of that step");
  first(report).lives[1].layout = first(report).layouts[1] = "command";
  const Floors own = baseline_of({&report, 1});
  const auto ruling = rule({{.file = "r.json", .report = report}}, own);
  EXPECT_TRUE(ruling.accepted()) << text_of(ruling);
}

TEST(Gate, a_life_cut_short_may_compare_nothing_but_must_not_differ) {
  const std::string pass = "cut-short: claims pass, but ";
  expect_all_refused({
      {pass + "rank 0 has max_delta nan",
       [](Report& r) { r.scenarios[2].ranks[0].max_delta = kNan; }},
      {pass + "rank 0 has 1 element with different bits",
       [](Report& r) { r.scenarios[2].ranks[0].bit_mismatches = 1; }},
      {pass + "has no evidence from any rank", [](Report& r) { r.scenarios[2].ranks.clear(); }},
      {pass + "compared nothing on any rank",
       [](Report& r) { r.scenarios[2].lives[1].outcome = LifeOutcome::kContinued; }},
      {pass + "compared nothing on any rank",  // after a refusal the unchanged state is compared
       [](Report& r) {
         r.scenarios[2].lives[1].outcome = LifeOutcome::kRefused;
         r.scenarios[2].lives[1].code = "IO";
       }},
  });
}

TEST(Gate, less_than_the_baseline) {
  const auto drop = [](Report& r, std::size_t i) {
    r.scenarios.erase(r.scenarios.begin() + static_cast<std::ptrdiff_t>(i));
    --r.planned;
  };
  expect_all_refused({
      {"one: it is in the baseline but not in the report", [&](Report& r) { drop(r, 0); }},
      {"scenarios: 2 run, but the baseline has 3", [&](Report& r) { drop(r, 0); }},
      {"cut-short: it is in the baseline but not in the report", [&](Report& r) { drop(r, 2); }},
      {"skipped: it is in the baseline but not in the report",
       [&](Report& r) {
         drop(r, 3);
         r.skipped.clear();
       }},
      {"one: it is in the baseline", [](Report& r) { first(r).name = "uno"; }},
      {"one: 199 elements compared, but the baseline has 200",
       [](Report& r) {
         --rank(r).elements;
         ++r.scenarios[1].ranks[0].elements;  // keeps the total the same
       }},
      {"one: 5 tensors and objects compared, but the baseline has 6",
       [](Report& r) { --rank(r).compared; }},
      {"elements: 399 compared in all, but the baseline has 400",
       [](Report& r) { --rank(r).elements; }},
      {"one: not_run, but it was run for the baseline: no MPI",
       [](Report& r) {
         first(r).verdict = Verdict::kNotRun;
         r.skipped.push_back({"one", "no MPI"});
       }},
      {"skipped: 2 skipped, but the baseline has 1",
       [](Report& r) {
         first(r).verdict = Verdict::kNotRun;
         r.skipped.push_back({"one", "no MPI"});
       }},
      {"more: not_run, but it is not skipped in the baseline: no MPI",
       [](Report& r) {
         r.skipped.push_back({"more", "no MPI"});
         ++r.planned;
       }},
      {"property continuity: it is in the baseline",
       [](Report& r) { r.properties.erase(r.properties.begin()); }},
      {"property continuity: 9 cases, but the baseline has 10",
       [](Report& r) { --r.properties[0].cases; }},
      {"mutant floor-vs-ceil-chunk: it is in the baseline",
       [](Report& r) { r.mutants.erase(r.mutants.begin()); }},
      {"determinism: 2 runs doubled, but the baseline has 3",
       [](Report& r) { first(r).doubled = false; }},
      {"matrix: it does not show that stale-plan is caught, but the baseline does",
       [](Report& r) {
         r.matrix->rows.pop_back();
         r.matrix->mutants = 1;
       }},
      {"matrix: it does not show that floor-vs-ceil-chunk is caught, but the baseline does",
       [](Report& r) { r.matrix.reset(); }},
      {"matrix: 1 scenarios, but the baseline has 2",
       [](Report& r) {
         r.matrix->scenarios.pop_back();
         for (auto& row : r.matrix->rows) {
           row.cells.pop_back();
           row.caught.erase("two");
         }
       }},
      {"exhaustive: 0 pairs passed with dp_reshardable, but the baseline has 25",
       [](Report& r) { r.exhaustive.clear(); }},
      {"exhaustive: 0 pairs passed with dp_reshardable, but the baseline has 25",
       [](Report& r) { r.exhaustive[0].sharding = "fully_reshardable"; }},
      // Pairs of layouts with copies of dp never count for those without, nor the other way round.
      {"exhaustive: 0 pairs passed with dp_reshardable, but the baseline has 25",
       [](Report& r) { r.exhaustive.erase(r.exhaustive.begin()); }},
      {"exhaustive: 0 pairs passed with dp_reshardable hsdp, but the baseline has 36",
       [](Report& r) { r.exhaustive.pop_back(); }},
      {"coverage: 0 timelines searched, but the baseline has 100",
       [](Report& r) { r.coverage.reset(); }},
      {"coverage: 99 timelines searched, but the baseline has 100",
       [](Report& r) { --r.coverage->runs; }},
      {"coverage: the baseline reached the mark 'load: refused', but the report did not",
       [](Report& r) { r.coverage->marks.pop_back(); }},
  });
}

TEST(Gate, a_matrix_that_does_not_show_every_mutant_caught) {
  expect_all_refused({
      {"matrix: it has 1 of 2 mutants", [](Report& r) { r.matrix->rows.pop_back(); }},
      {"matrix: stale-plan has 1 cells for 2 scenarios",
       [](Report& r) { r.matrix->rows[1].cells.pop_back(); }},
      {"matrix: stale-plan was not reached",
       [](Report& r) {
         r.matrix->rows[1].caught.clear();
         r.matrix->rows[1].cells = "n.";
       }},
  });
}

TEST(Gate, a_search_that_does_not_show_that_nothing_fails) {
  expect_all_refused({
      {"coverage: a timeline fails: TORN_FILE: rank #",
       [](Report& r) { r.coverage->findings[0].status = "ongoing"; }},
      {"coverage: 1 marks were never reached: load: refused",
       [](Report& r) { r.coverage->marks[1].count = 0; }},
      {"coverage: it has no marks", [](Report& r) { r.coverage->marks.clear(); }},
      {"coverage: 18,446,744,073,709,551,615 timelines are more than any run tries",
       [](Report& r) { r.coverage->runs = std::numeric_limits<std::uint64_t>::max(); }},
      {"coverage: it has more branches than timelines",
       [](Report& r) { r.coverage->branches = 101; }},
      {"coverage: more timelines than ran reached load: continued",
       [](Report& r) { r.coverage->marks[0].count = 101; }},
  });
}

TEST(Gate, pairs_of_layouts_that_do_not_add_up_to_the_whole) {
  const auto part = [](Report& r, std::size_t i) -> ExhaustivePart& {
    return r.exhaustive[0].parts[i];
  };
  expect_all_refused({
      {"exhaustive: dp_reshardable: part 1 is missing",
       [](Report& r) { r.exhaustive[0].parts.erase(r.exhaustive[0].parts.begin()); }},
      {"exhaustive: dp_reshardable: parts from 2 to 2 are missing",
       [](Report& r) { r.exhaustive[0].parts.pop_back(); }},
      {"exhaustive: dp_reshardable: parts from 1 to 2 are missing",
       [](Report& r) { r.exhaustive[0].parts.clear(); }},
      {"exhaustive: dp_reshardable hsdp: parts from 1 to 1 are missing",
       [](Report& r) { r.exhaustive[1].parts.clear(); }},
      {"exhaustive: dp_reshardable occurs twice", [](Report& r) { r.exhaustive[1].hsdp = false; }},
      {"exhaustive: dp_reshardable: part 1 occurs twice", [&](Report& r) { part(r, 1).part = 1; }},
      {"exhaustive: dp_reshardable: there are more than 2 parts",
       [&](Report& r) { part(r, 1).part = 3; }},
      {"exhaustive: dp_reshardable: the parts have 24 of 25 pairs",
       [&](Report& r) { part(r, 1).pairs = part(r, 1).passed = 9; }},
      {"exhaustive: dp_reshardable: part 2: 9 of 10 pairs passed",
       [&](Report& r) { part(r, 1).passed = 9; }},
      {"exhaustive: dp_reshardable: part 2: 1 pairs are wrong, first tp2 -> dp2: rank 1",
       [&](Report& r) {
         part(r, 1).wrong = 1;
         part(r, 1).first_wrong = "tp2 -> dp2: rank 1";
       }},
      {"exhaustive: dp_reshardable: part 1: 16 of 15 pairs refused",
       [&](Report& r) { part(r, 0).refused["LAYOUT_MISMATCH"] = 16; }},
      {"exhaustive: dp_reshardable: part 2: no element was compared",
       [&](Report& r) { part(r, 1).elements = 0; }},
      {"exhaustive: dp_reshardable: no element of any pair was compared",
       [&](Report& r) {
         for (const std::size_t one : {0, 1}) {
           part(r, one).refused = {{"LAYOUT_MISMATCH", part(r, one).passed}};
           part(r, one).elements = 0;
         }
       }},
      {"exhaustive: dp_reshardable: no run has 1000000000000 parts",
       [](Report& r) { r.exhaustive[0].of = 1'000'000'000'000; }},
      {"exhaustive: dp_reshardable: there are more than 2 parts",
       [&](Report& r) { part(r, 1).part = 1'000'000'000'000; }},
      {"exhaustive: dp_reshardable: part 1: it counts 18446744073709551611, which no run does",
       [&](Report& r) {  // 2^64 - 5 and 30 would be 25
         part(r, 0).pairs = part(r, 0).passed = std::numeric_limits<std::uint64_t>::max() - 4;
         part(r, 1).pairs = part(r, 1).passed = 30;
       }},
      {"exhaustive: dp_reshardable: part 1: it counts 18446744073709551615, which no run does",
       [&](Report& r) {  // 2^64 - 1 and 5 would be 4
         part(r, 0).refused = {{"HANG", std::numeric_limits<std::uint64_t>::max()}, {"IO", 5}};
       }},
      {"exhaustive: dp_reshardable: 4 layouts do not make 25 pairs",
       [](Report& r) { r.exhaustive[0].layouts = 4; }},
  });
}

// The refusal gives a single reason, which names the commands that produce the missing results. It
// does not list each mutant.
TEST(Gate, a_plain_run_is_one_reason_with_the_commands_of_a_full_one) {
  struct Lacking {
    std::string words;
    std::string commands;
    std::function<void(Report&)> spoil;
  };
  const std::string run = "reprise run scenarios --double --report out";
  const std::string properties = "reprise search properties --report out";
  const std::string mutants = "reprise mutants scenarios --report out";
  const std::vector<Lacking> rows = {
      {"is incomplete: no property (the baseline has 2)", properties,
       [](Report& r) { r.properties.clear(); }},
      {"is incomplete: no mutant (the baseline has 2)", mutants,
       [](Report& r) { r.mutants.clear(); }},
      {"is incomplete: nothing was run twice (the baseline has 3)",
       run + " && " + properties + " && " + mutants, run_nothing_twice},
      {"is incomplete: nothing was run twice (the baseline has 3), no property (the baseline has "
       "2), "
       "no "
       "mutant (the baseline has 2)",
       run + " && " + properties + " && " + mutants,
       [](Report& r) {
         run_nothing_twice(r);
         r.properties.clear();
         r.mutants.clear();
       }},
      {"is incomplete: 3 scenarios are missing (the baseline has 4), nothing was run twice (the "
       "baseline has 3)",  // one row of each table
       run + " && " + properties + " && " + mutants,
       [](Report& r) {
         run_nothing_twice(r);
         r.mutants[0].caught_by[0].scenario = "two";
         r.scenarios = {r.scenarios[1]};
         r.planned = 1;
         r.skipped.clear();
       }},
  };
  for (const auto& row : rows) {
    for (const auto* file : {"out", "out/report.json"}) {
      Report report = sample_report();
      row.spoil(report);
      const auto ruling = rule({{.file = file, .report = report}}, sample_baseline());
      ASSERT_EQ(ruling.refusals.size(), 1U) << row.words << '\n' << text_of(ruling);
      EXPECT_EQ(ruling.refusals[0].reason, row.words);
      EXPECT_EQ(ruling.refusals[0].fix, "complete it: " + row.commands);
    }
  }
}

TEST(Gate, many_scenarios_that_are_gone_are_one_reason) {
  Report before = sample_report();
  for (int i = 0; i < 30; ++i) before.scenarios.push_back(sample_scenario("s" + std::to_string(i)));
  before.planned += 30;
  const auto ruling =
      rule({{.file = "out", .report = sample_report()}}, {{before.lane, floor_of(before)}});
  const auto reasons =
      std::count_if(ruling.refusals.begin(), ruling.refusals.end(), [](const auto& one) {
        return one.reason.find("is missing") != std::string::npos || one.subject.starts_with("s");
      });
  EXPECT_EQ(ruling.refusals[0].reason,
            "is incomplete: 30 scenarios are missing (the baseline has 34)")
      << text_of(ruling);
  EXPECT_EQ(reasons, 0) << text_of(ruling);
  EXPECT_LE(ruling.refusals.size(), 2U) << text_of(ruling);
}

TEST(Gate, a_sample_that_was_run_twice_names_each_scenario_that_is_gone) {
  Report report = sample_report();
  report.scenarios = {report.scenarios[1]};
  report.planned = 1;
  report.skipped.clear();
  const auto ruling = rule(report);
  for (const char* name : {"one", "cut-short", "skipped"}) {
    expect_refused(ruling, std::string(name) + ": it is in the baseline but not in the report");
  }
  expect_refused(ruling, "scenarios: 1 run, but the baseline has 3");
}

TEST(Gate, commands_call_the_program_and_catalogue_as_the_caller_did) {
  Report report = sample_report();
  report.properties.clear();
  report.mutants.clear();
  for (auto& result : report.scenarios) result.file = "my jobs/" + result.name + ".yaml";
  const std::vector<Submission> submissions = {{.file = "it's/out", .report = report}};
  const auto ruling =
      rule(submissions, sample_baseline(), {.commit = kSampleCommit, .program = "build/reprise"});
  ASSERT_EQ(ruling.refusals.size(), 1U);
  EXPECT_EQ(ruling.refusals[0].fix,
            "complete it: build/reprise search properties --report 'it'\\''s/out' && build/reprise "
            "mutants 'my jobs' --report 'it'\\''s/out'");
}

TEST(Gate, a_summary_that_its_rows_do_not_support) {
  expect_all_refused({
      {"one: occurs in the report twice", [](Report& r) { r.scenarios.push_back(first(r)); }},
      {"lanes.planned: says 5, but the report holds 4 scenarios", [](Report& r) { ++r.planned; }},
      {"lanes.planned: says 0", [](Report& r) { r.planned = 0; }},
      {"skipped: was not run, but no reason is given", [](Report& r) { r.skipped[0].reason = ""; }},
      {"one: is listed both as skipped and as run",
       [](Report& r) {
         r.skipped.push_back({"one", "no MPI"});
       }},
      {"skipped: was not run but is not listed as skipped", [](Report& r) { r.skipped.clear(); }},
      {"property continuity: occurs in the report twice",
       [](Report& r) { r.properties.push_back(r.properties[0]); }},
      {"mutant stale-plan: occurs in the report twice",
       [](Report& r) { r.mutants.push_back(r.mutants[1]); }},
  });
}

TEST(Gate, properties_mutants_and_doubled_runs_that_failed) {
  using enum Verdict;
  const std::string property = "property continuity: ";
  const std::string mutant = "mutant floor-vs-ceil-chunk: ";
  expect_all_refused({
      {property + "fail with seed 18446744073709551615: dp=1",
       [](Report& r) {
         r.properties[0].verdict = kFail;
         r.properties[0].counterexample = "dp=1";
       }},
      {property + "inconclusive", [](Report& r) { r.properties[0].verdict = kInconclusive; }},
      {property + "not_run", [](Report& r) { r.properties[0].verdict = kNotRun; }},
      {property + "claims pass, but has a counterexample",
       [](Report& r) { r.properties[0].counterexample = "x"; }},
      {property + "claims pass, but has the code HANG",
       [](Report& r) { r.properties[0].code = "HANG"; }},
      {property + "claims pass, but tried no case",
       [](Report& r) {
         r.properties[0].cases = 0;
         r.properties[0].distribution.clear();
       }},
      {property + "says that it tried 281,474,976,710,657 cases, which no run does",
       [](Report& r) { r.properties[0].cases = (std::uint64_t{1} << 48) + 1; }},
      {property + "says that dp 2 came up in 11 cases of 10",
       [](Report& r) { r.properties[0].distribution["dp"]["2"] = 11; }},
      {"mutants: MUTANT_SURVIVED: not caught by any scenario or property: floor-vs-ceil-chunk",
       [](Report& r) {
         r.mutants[0].caught = false;
         r.mutants[0].caught_by.clear();
       }},
      {"mutants: VALIDATOR_VACUOUS",
       [](Report& r) {
         for (auto& one : r.mutants) {
           one.caught = false;
           one.caught_by.clear();
         }
       }},
      {mutant + "is said to be caught, but by nothing",
       [](Report& r) { r.mutants[0].caught_by.clear(); }},
      {mutant + "is said to be caught by something that passed or was not run",
       [](Report& r) { r.mutants[0].caught_by[0].verdict = "pass"; }},
      {mutant + "is said to be caught by something that passed or was not run",
       [](Report& r) { r.mutants[0].caught_by[0].verdict = "not_run"; }},
      {mutant + "is said to survive, but something caught it",
       [](Report& r) { r.mutants[0].caught = false; }},
      {"determinism: 1 of 3 doubled runs differed the second time",
       [](Report& r) { take_another_course(first(r)); }},
  });
}

TEST(Gate, objects_alone_count_in_lane_files_and_nowhere_else) {
  Report report = sample_report();
  report.scenarios = {sample_scenario("diff a b")};
  report.planned = 1;
  report.skipped.clear();
  report.mutants.clear();
  run_nothing_twice(report);
  for (auto& one : first(report).ranks) one.elements = 0;
  for (const ReportLane lane : {ReportLane::kFiles, ReportLane::kSim, ReportLane::kMpi}) {
    report.lane = lane;
    const Floors baseline = baseline_of({&report, 1});
    const auto ruling = rule({{.file = "r.json", .report = report}}, baseline);
    EXPECT_EQ(ruling.accepted(), report.lane == ReportLane::kFiles)
        << name_of(lane) << text_of(ruling);
  }
}

TEST(Gate, what_is_unreadable_or_of_a_lane_too_few_or_too_many) {
  const Report sim = sample_report();
  Report mpi = sim;
  mpi.lane = ReportLane::kMpi;
  const Report both_lanes[] = {sim, mpi};
  const Floors both = baseline_of(both_lanes);
  const Submission of_sim{.file = "sim.json", .report = sim};
  const Submission of_mpi{.file = "mpi.json", .report = mpi};
  EXPECT_TRUE(rule({of_sim, of_mpi}, both).accepted());
  EXPECT_TRUE(
      rule({of_mpi}, both, {.commit = kSampleCommit, .lanes = {ReportLane::kMpi}}).accepted());

  const Submission absent{.file = "no.json", .unreadable = "is missing"};
  expect_refused(rule({absent, of_sim, of_mpi}, both), "no.json: : is missing");
  // One that can't be read is exactly one reason: it may be of the lane that is missing.
  EXPECT_EQ(text_of(rule({absent}, sample_baseline())), "no.json: : is missing\n");
  EXPECT_EQ(text_of(rule({absent, of_sim}, both)), "no.json: : is missing\n");
  expect_refused(rule({absent}, both), "lane mpi: no report of it was given");
  expect_refused(rule({}, both), "lane mpi: no report of it was given");
  expect_refused(rule({of_sim}, both), "lane mpi: no report of it was given");
  expect_refused(rule({of_sim, of_mpi, of_sim}, both), "lane: 'sim' already has a report");
  expect_refused(rule({of_sim, of_mpi}, sample_baseline()),
                 "mpi.json: lane: 'mpi' is not one of the lanes to judge");
  expect_refused(
      rule({of_sim, of_mpi}, both, {.commit = kSampleCommit, .lanes = {ReportLane::kSim}}),
      "mpi.json: lane: 'mpi' is not one of the lanes to judge");
  expect_refused(
      rule({of_sim}, sample_baseline(), {.commit = kSampleCommit, .lanes = {ReportLane::kGpu}}),
      "lane gpu: no report of it was given");
  // One of the two reports is damaged. The good report must not hide this.
  Submission spoilt = of_mpi;
  spoilt.report->scenarios[0].ranks[0].max_delta = 1;
  expect_refused(rule({of_sim, spoilt}, both), "mpi.json: one: claims pass");
}

TEST(Gate, refusals_are_one_line_each_and_json_holds_all_of_it) {
  Report report = sample_report();
  first(report).verdict = Verdict::kFail;
  first(report).reason = "two\nlines \x1b[2J\r\x7f";
  const GateRuling ruling = rule(report);
  for (const auto& refusal : ruling.refusals) {
    for (const unsigned char c : refusal.reason + refusal.fix + refusal.subject) {
      EXPECT_GE(c, 0x20);
      EXPECT_NE(c, 0x7f);
    }
  }
  const auto json = nlohmann::json::parse(to_json(ruling, kSampleCommit));
  EXPECT_EQ(json["accepted"], false);
  EXPECT_EQ(json["commit"], kSampleCommit);
  EXPECT_EQ(json["refusals"].size(), ruling.refusals.size());
  EXPECT_EQ(json["refusals"][0]["file"], "r.json");
  EXPECT_EQ(json["lanes"][0]["demanded"]["elements"], 400);
  EXPECT_EQ(nlohmann::json::parse(to_json(rule(sample_report()), ""))["accepted"], true);
}

}  // namespace
}  // namespace reprise::reports::gate_test
