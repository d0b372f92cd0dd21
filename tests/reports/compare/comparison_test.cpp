// Tests that each kind of change between two reports is told for what it is.

#include "reports/compare/comparison.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/reports/sample_report.hpp"

namespace reprise::reports::comparison_test {
namespace {

/// Returns the changes as "meaning: what: subject: before -> now", one per line.
std::string text_of(const ReportComparison& comparison) {
  std::string text;
  for (const auto& [meaning, what, subject, before, now] : comparison.changes) {
    text += name_of(meaning) + ": " + what + ": " + subject + ": " + before + " -> " + now + '\n';
  }
  return text;
}

/// Returns a report of a later commit that shows the same as the sample.
Report later_report() {
  Report report = sample_report();
  report.project.commit = std::string(40, 'b');
  return report;
}

struct Row {
  std::string line;
  std::function<void(Report&)> change;
};

/// Expects that exactly this change is told.
void expect_told(const Report& before, Report now, const Row& row) {
  row.change(now);
  EXPECT_EQ(text_of(compare_reports(before, now, {})), row.line + "\n");
}

ScenarioResult& one(Report& report) { return report.scenarios[0]; }

TEST(CompareReports, equal_reports_have_no_changes) {
  EXPECT_EQ(text_of(compare_reports(sample_report(), sample_report(), {})), "");
  EXPECT_EQ(text_of(compare_reports(sample_report(), later_report(), {})), "");
  EXPECT_TRUE(compare_reports(sample_report(), sample_report(), {}).same_program);
  EXPECT_FALSE(compare_reports(sample_report(), later_report(), {}).same_program);
}

TEST(CompareReports, tells_what_happened_to_a_scenario) {
  const auto failing = [](Report& r, const char* code) {
    one(r).verdict = Verdict::kFail;
    one(r).code = code;
    r.verdict = Verdict::kFail;
  };
  const auto once = [](Report report) {  // else the number of doubled runs is told, too
    run_nothing_twice(report);
    return report;
  };
  const Report sample = once(sample_report());
  const Report later = once(later_report());
  Report failed = sample;
  failing(failed, "HANG");
  Report left_out = sample;
  left_out.scenarios.erase(left_out.scenarios.begin());

  expect_told(left_out, later, {"information: new: one:  -> pass", [](Report&) {}});
  expect_told(sample, later, {"worse: gone: one: pass -> ", [](Report& r) {
                                r.scenarios.erase(r.scenarios.begin());
                              }});
  expect_told(sample, later,
              {"worse: newly failing: the report: pass -> fail\n"
               "worse: newly failing: one: pass -> fail HANG",
               [&](Report& r) { failing(r, "HANG"); }});
  expect_told(sample, later,
              {"worse: newly failing: the report: pass -> inconclusive\n"
               "worse: newly failing: one: pass -> inconclusive",
               [&](Report& r) { one(r).verdict = r.verdict = Verdict::kInconclusive; }});
  expect_told(left_out, later,
              {"worse: newly failing: the report: pass -> fail\n"
               "worse: new and failing: one:  -> fail HANG",
               [&](Report& r) { failing(r, "HANG"); }});
  expect_told(failed, later,
              {"better: mended: the report: fail -> pass\n"
               "better: mended: one: fail HANG -> pass",
               [](Report&) {}});
  expect_told(failed, later, {"worse: ends otherwise: one: fail HANG -> fail IO", [&](Report& r) {
                                failing(r, "IO");
                              }});
  expect_told(sample, later, {"worse: no longer run: one: pass -> not_run", [](Report& r) {
                                one(r).verdict = Verdict::kNotRun;
                              }});
  expect_told(sample, later,
              {"worse: no longer run: one: pass -> not_run",  // skipped, and not even listed
               [](Report& r) {
                 r.scenarios.erase(r.scenarios.begin());
                 r.skipped.push_back({"one", "no MPI"});
               }});
  expect_told(sample, later, {"better: now run: skipped: not_run -> pass", [](Report& r) {
                                r.scenarios[3] = sample_scenario("skipped");
                                r.scenarios[3].doubled = false;
                                r.skipped.clear();
                              }});
}

TEST(CompareReports, a_scenario_is_slower_by_both_the_ratio_and_the_seconds) {
  const auto takes = [](double before, double now, const SlowerLimits& limits) {
    Report was = sample_report();
    Report is = later_report();
    was.seconds = is.seconds = 1000;
    one(was).seconds = before;
    one(is).seconds = now;
    return text_of(compare_reports(was, is, limits));
  };
  const std::string slower = "worse: slower: one: 2.00 s -> 4.00 s\n";
  EXPECT_EQ(takes(2, 4, {}), slower);
  EXPECT_EQ(takes(2, 4, {.ratio = 2}), "");
  EXPECT_EQ(takes(2, 4, {.ratio = 1.9}), slower);
  EXPECT_EQ(takes(2, 4, {.seconds = 2}), "");
  EXPECT_EQ(takes(2, 4, {.seconds = 1.9}), slower);
  EXPECT_EQ(takes(0.1, 1, {}), "");
  EXPECT_EQ(takes(100, 110, {}), "");
  EXPECT_EQ(takes(4, 2, {}), "");
  Report was = sample_report();
  Report is = later_report();
  is.seconds = 1000;
  one(is).seconds = 100;
  is.machine.cpu = "another";
  EXPECT_EQ(text_of(compare_reports(was, is, {})),
            "information: slower: one: 0.10 s -> 100.00 s\n");
}

TEST(CompareReports, a_slower_machine_is_told_once_and_scenarios_relative_to_it) {
  // Returns a report of 20 scenarios that take the factor times 1, 2, ... 20 seconds.
  const auto takes = [](double factor) {
    Report report = sample_report();
    report.seconds = 1000;
    report.mutants.clear();
    report.scenarios.clear();
    for (int i = 1; i <= 20; ++i) {
      report.scenarios.push_back(sample_scenario("s" + std::to_string(100 + i)));
      report.scenarios.back().seconds = factor * i;
    }
    return report;
  };
  const std::string slower = "information: slower machine: the machine:  -> 3.0 times\n";
  EXPECT_EQ(text_of(compare_reports(takes(1), takes(3), {})), slower);
  EXPECT_EQ(text_of(compare_reports(takes(1), takes(1), {})), "");
  EXPECT_EQ(text_of(compare_reports(takes(3), takes(1), {})), "");

  Report one_slower_still = takes(3);
  one_slower_still.scenarios[9].seconds = 100;
  EXPECT_EQ(text_of(compare_reports(takes(1), one_slower_still, {})),
            "worse: slower: s110: 10.00 s -> 100.00 s\n" + slower);

  Report half_slower = takes(1);  // this is the program
  for (std::size_t i = 0; i < 10; ++i) half_slower.scenarios[i].seconds *= 4;
  const auto comparison = compare_reports(takes(1), half_slower, {});
  EXPECT_EQ(comparison.slowdown, 1);
  EXPECT_EQ(comparison.count(Meaning::kWorse), 10U);

  Report few = takes(3);  // too few to show what they have in common
  few.scenarios.resize(5);
  Report few_before = takes(1);
  few_before.scenarios.resize(5);
  EXPECT_EQ(compare_reports(few_before, few, {}).count(Meaning::kWorse), 5U);
}

TEST(CompareReports, what_one_program_repeats_is_held_strictly_and_told_of_others) {
  const std::vector<Row> rows = {
      {"different content digest: one: d1ge57 -> 0",
       [](Report& r) { one(r).content_digest = "0"; }},
      {"different event hash: one: 00ff00ff00ff00ff -> 0",
       [](Report& r) { one(r).event_hash = "0"; }},
      {"other course: one:  -> ran, fell_back",
       [](Report& r) { one(r).lives[1].outcome = LifeOutcome::kFellBack; }},
      {"more elements: one: 200 -> 201", [](Report& r) { ++one(r).ranks[0].elements; }},
      {"more tensors and objects: one: 6 -> 7", [](Report& r) { ++one(r).ranks[0].compared; }},
  };
  for (const auto& [line, change] : rows) {
    expect_told(sample_report(), sample_report(), {"worse: " + line, change});
    expect_told(sample_report(), later_report(), {"information: " + line, change});
    Report dirty = sample_report();
    dirty.project.dirty = true;
    expect_told(sample_report(), dirty, {"information: " + line, change});
    Report seeded = sample_report();
    seeded.seed = 2;
    expect_told(sample_report(), seeded, {"information: " + line, change});
    Report unknown = sample_report();
    unknown.project.commit = "unknown";
    expect_told(unknown, unknown, {"information: " + line, change});
  }
}

TEST(CompareReports, a_lane_without_event_hashes_need_not_repeat_its_course) {
  Report report = sample_report();
  for (auto& result : report.scenarios) result.event_hash.clear();
  expect_told(report, report, {"information: other course: one:  -> ran, fell_back", [](Report& r) {
                                 one(r).lives[1].outcome = LifeOutcome::kFellBack;
                               }});
}

TEST(CompareReports, lanes_must_agree_on_content_unless_a_save_is_left_to_time) {
  const auto other_digest = [](Report& r) { one(r).content_digest = "0"; };
  Report report = sample_report();
  for (auto& result : report.scenarios) result.event_hash.clear();
  expect_told(report, report, {"worse: different content digest: one: d1ge57 -> 0", other_digest});
  one(report).left_to_time = true;
  expect_told(report, report,
              {"information: different content digest: one: d1ge57 -> 0", other_digest});
}

TEST(CompareReports, a_hash_that_is_gone_is_another_one) {
  expect_told(sample_report(), sample_report(),
              {"worse: different event hash: one: 00ff00ff00ff00ff -> ",
               [](Report& r) { one(r).event_hash.clear(); }});
}

TEST(CompareReports, a_pass_that_its_entry_contradicts_is_worse_and_never_mended) {
  const std::string told = text_of(compare_reports(sample_report(),
                                                   [] {
                                                     Report report = later_report();
                                                     one(report).ranks[0].bit_mismatches = 5;
                                                     one(report).code = "ZERO_FILL";
                                                     return report;
                                                   }(),
                                                   {}));
  EXPECT_NE(told.find("worse: contradicts its own entries: one: "), std::string::npos) << told;
  EXPECT_EQ(told.find("mended"), std::string::npos) << told;
}

TEST(CompareReports, a_failure_that_is_no_longer_run_is_not_mended) {
  Report failed = sample_report();
  one(failed).verdict = failed.verdict = Verdict::kFail;
  one(failed).code = "HANG";
  Report skipped = later_report();
  one(skipped).verdict = Verdict::kNotRun;
  const std::string told = text_of(compare_reports(failed, skipped, {}));
  EXPECT_NE(told.find("worse: no longer run: one: fail HANG -> not_run"), std::string::npos)
      << told;
}

TEST(CompareReports, missing_evidence_is_worse_and_new_evidence_is_told) {
  const std::vector<Row> rows = {
      {"worse: fewer elements: one: 200 -> 199", [](Report& r) { --one(r).ranks[0].elements; }},
      {"worse: fewer tensors and objects: one: 6 -> 5",
       [](Report& r) { --one(r).ranks[0].compared; }},
      {"worse: gone: property continuity: pass -> ",
       [](Report& r) { r.properties.erase(r.properties.begin()); }},
      {"worse: fewer cases: property continuity: 10 -> 9",
       [](Report& r) { --r.properties[0].cases; }},
      {"information: more cases: property continuity: 10 -> 11",
       [](Report& r) { ++r.properties[0].cases; }},
      {"information: new: property p:  -> pass",
       [](Report& r) {
         r.properties.push_back({.name = "p", .cases = 1, .verdict = Verdict::kPass});
       }},
      {"worse: newly failing: the report: pass -> fail\n"
       "worse: newly failing: property continuity: pass -> fail",
       [](Report& r) { r.verdict = r.properties[0].verdict = Verdict::kFail; }},
      {"worse: gone: mutant stale-plan: pass -> ", [](Report& r) { r.mutants.pop_back(); }},
      {"worse: newly failing: the report: pass -> fail\n"
       "worse: newly failing: mutant stale-plan: pass -> fail",
       [](Report& r) {
         r.verdict = Verdict::kFail;
         r.mutants[1].caught = false;
       }},
      {"worse: fewer doubled runs: determinism: 3 -> 2",
       [](Report& r) { r.scenarios[0].doubled = false; }},
      {"worse: fewer pairs passed: exhaustive dp_reshardable hsdp: 36 -> 0",
       [](Report& r) { r.exhaustive.pop_back(); }},
      {"information: more timelines: coverage: 100 -> 101", [](Report& r) { ++r.coverage->runs; }},
      {"worse: lost mark: coverage: load: refused: load: refused -> ",
       [](Report& r) { r.coverage->marks.pop_back(); }},
      {"better: gained mark: coverage: load: new:  -> load: new",
       [](Report& r) {
         r.coverage->marks.push_back({"load: new", 1});
       }},
      {"worse: newly failing: the report: pass -> fail\n"
       "worse: new finding: coverage: TORN_FILE: rank #:  -> TORN_FILE: rank #",
       [](Report& r) {
         r.verdict = Verdict::kFail;
         r.coverage->findings[0].status = "new";
       }},
      {"worse: lost mutant caught: matrix: stale-plan: stale-plan -> \n"
       "worse: newly failing: the report: pass -> fail",
       [](Report& r) {
         r.verdict = Verdict::kFail;
         r.matrix->rows[1] = {.mutant = "stale-plan", .cells = "pp", .caught = {}};
       }},
      {"worse: newly failing: the report: pass -> fail\nworse: more doubled runs that differ: "
       "determinism: 0 -> 1",
       [](Report& r) {
         r.verdict = Verdict::kFail;
         take_another_course(r.scenarios[0]);
       }},
      {"worse: switched on a mutant: the report:  -> stale-plan",
       [](Report& r) { r.mutant = "stale-plan"; }},
      {"worse: newly failing: the report: pass -> inconclusive\n"
       "worse: was interrupted: the report:  -> interrupted",
       [](Report& r) {
         r.verdict = Verdict::kInconclusive;
         r.interrupted = true;
       }},
      {"worse: contradicts its own entries: the report: inconclusive -> pass",
       [](Report& r) { r.interrupted = true; }},
      {"worse: occurs in the report twice: one:  -> ",
       [](Report& r) { r.scenarios.push_back(one(r)); }},
  };
  for (const auto& row : rows) {
    Report now = later_report();
    row.change(now);
    const std::string told = text_of(compare_reports(sample_report(), now, {}));
    std::size_t begin = 0;
    while (begin < row.line.size()) {  // in any order
      const auto end = std::min(row.line.find('\n', begin), row.line.size());
      const std::string line = row.line.substr(begin, end - begin);
      EXPECT_NE(told.find(line + "\n"), std::string::npos) << line << "\ntold:\n" << told;
      begin = end + 1;
    }
  }
}

TEST(CompareReports, a_finding_is_resolved_only_by_another_search) {
  Report before = sample_report();
  before.verdict = Verdict::kFail;
  before.coverage->findings[0].status = "ongoing";
  Report now = later_report();
  EXPECT_NE(text_of(compare_reports(before, now, {})).find("better: finding not seen"),
            std::string::npos);
  now.coverage.reset();
  EXPECT_EQ(text_of(compare_reports(before, now, {})).find("finding not seen"), std::string::npos);
}

TEST(CompareReports, json_has_all_of_it) {
  Report now = later_report();
  one(now).event_hash = "0";
  now.properties.clear();
  const auto json = nlohmann::json::parse(to_json(compare_reports(sample_report(), now, {})));
  EXPECT_EQ(json["worse"], 2);
  EXPECT_EQ(json["better"], 0);
  EXPECT_EQ(json["information"], 1);
  EXPECT_EQ(json["same_program"], false);
  EXPECT_EQ(json["same_machine"], true);
  EXPECT_EQ(json["changes"][2], (nlohmann::json{{"meaning", "information"},
                                                {"what", "different event hash"},
                                                {"subject", "one"},
                                                {"before", "00ff00ff00ff00ff"},
                                                {"now", "0"}}));
}

}  // namespace
}  // namespace reprise::reports::comparison_test
