#include "reports/shards.hpp"

#include <gtest/gtest.h>

#include "reports/evidence.hpp"
#include "reports/report.hpp"
#include "reprise/error.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

/// A report of scenarios with these names, and of no other work.
Report report_of(const std::vector<std::string>& names, const Shard& shard = {}) {
  Report report;
  report.project.commit = kSampleCommit;
  for (const auto& name : names) report.scenarios.push_back(sample_scenario(name));
  report.planned = names.size();
  if (!shard.work.empty()) put_shard(report, shard);
  report.verdict = overall(report);
  return report;
}

Report joined(const std::vector<Report>& reports) {
  std::vector<NamedReport> named;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    named.push_back({"r" + std::to_string(i), &reports[i]});
  }
  return merged(named);
}

std::string refusal(const std::vector<Report>& reports) {
  try {
    joined(reports);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUsage);
    return error.what();
  }
}

TEST(Shards, of_all_machines_make_the_report_of_one) {
  const Report whole = report_of({"a", "b", "c", "d", "e"});
  const std::vector<Report> shards = {report_of({"b", "d"}, {"scenarios", 2, 2, 5}),
                                      report_of({"a", "c", "e"}, {"scenarios", 1, 2, 5})};
  EXPECT_EQ(to_json(joined(shards)), to_json(whole));
}

TEST(Shards, are_refused_by_the_gate_until_they_are_merged) {
  const Report shard = report_of({"a"}, {"scenarios", 1, 2, 2});
  EXPECT_EQ(shard.verdict, Verdict::kPass);
  const auto reasons = [](const Report& report) {
    std::string all;
    for (const auto& refusal : check_evidence(report)) all += refusal.reason + "\n";
    return all;
  };
  const std::string only = "scenarios: only shard 1 of 2 was run\n";
  const Report whole = report_of({"a", "b"});
  EXPECT_EQ(reasons(parse_report(to_json(shard), "r.json")), only + reasons(report_of({"a"})));
  EXPECT_EQ(reasons(joined({shard, report_of({"b"}, {"scenarios", 2, 2, 2})})), reasons(whole));
}

TEST(Shards, that_are_missing_twice_there_or_of_other_work_are_named) {
  const Report first = report_of({"a"}, {"scenarios", 1, 3, 3});
  const Report second = report_of({"b"}, {"scenarios", 2, 3, 3});
  EXPECT_NE(refusal({first}).find("of 3 shards these are missing: 2, 3"), std::string::npos);
  EXPECT_NE(refusal({first, second}).find("missing: 3;"), std::string::npos);
  EXPECT_NE(refusal({first, first}).find("which r0 has, too [file r1]"), std::string::npos);
  const Report other = report_of({"b"}, {"scenarios", 2, 3, 4});
  EXPECT_NE(refusal({first, other}).find("1 of the"), 0U);
  EXPECT_NE(refusal({first, other}).find("another report's shards"), std::string::npos);
}

TEST(Shards, of_another_run_are_refused) {
  Report other = report_of({"b"});
  other.project.commit = std::string(40, 'f');
  EXPECT_NE(refusal({report_of({"a"}), other}).find("merge reports of one run"), std::string::npos);
  other = report_of({"b"});
  other.seed = 2;
  EXPECT_NE(refusal({report_of({"a"}), other}).find("seed 2"), std::string::npos);
  EXPECT_NE(refusal({report_of({"a"}), report_of({"a"})}).find("a is in two"), std::string::npos);
}

TEST(Shards, keep_what_went_wrong_in_any_of_them) {
  Report red = report_of({"b"}, {"scenarios", 2, 2, 2});
  red.scenarios[0].verdict = Verdict::kFail;
  red.scenarios[0].code = "LOST_OBJECT";
  red.interrupted = true;
  red.project.dirty = true;
  const Report all = joined({report_of({"a"}, {"scenarios", 1, 2, 2}), red});
  EXPECT_EQ(all.verdict, Verdict::kFail);
  EXPECT_TRUE(all.interrupted);
  EXPECT_TRUE(all.project.dirty);
  EXPECT_EQ(all.scenarios[1].code, "LOST_OBJECT");
}

TEST(Shards, share_the_mistakes_of_files_that_nobody_can_read) {
  std::vector<Report> shards = {report_of({"a"}, {"scenarios", 1, 2, 2}),
                                report_of({"b"}, {"scenarios", 2, 2, 2})};
  for (auto& shard : shards) {
    shard.scenarios.push_back({.name = "bad", .code = "USAGE", .reason = "no 'sead'"});
  }
  const Report all = joined(shards);
  EXPECT_EQ(all.scenarios.size(), 3U);
  EXPECT_EQ(all.skipped.size(), 1U);
  EXPECT_EQ(all.verdict, Verdict::kInconclusive);
}

TEST(Shards, of_a_search_of_timelines_are_added_up) {
  const auto shard_of = [](std::uint64_t number, std::uint64_t seed, Coverage coverage) {
    coverage.seed = seed;
    Report report = report_of({}, {kTimelines, number, 2, 30});
    report.coverage = std::move(coverage);
    return report;
  };
  const SearchFinding torn{.signature = "TORN", .code = "TORN_FILE", .count = 2, .recipe = "1"};
  const Coverage one{.runs = 10,
                     .branches = 4,
                     .marks = {{"a", 3}, {"b", 0}},
                     .curve = {{5, 0, 2}, {10, 1, 7}},
                     .findings = {torn}};
  const Coverage two{.runs = 20,
                     .branches = 5,
                     .inconclusive = 1,
                     .marks = {{"a", 1}, {"b", 6}},
                     .curve = {{20, 2, 9}},
                     .findings = {{.signature = "IO", .code = "IO", .count = 1}, torn}};
  const Report all = joined({shard_of(2, 8, two), shard_of(1, 7, one)});
  ASSERT_TRUE(all.coverage);
  EXPECT_EQ(all.coverage->seed, 7U);
  EXPECT_EQ(all.coverage->runs, 30U);
  EXPECT_EQ(all.coverage->branches, 9U);
  EXPECT_EQ(all.coverage->inconclusive, 1U);
  EXPECT_EQ(all.coverage->marks.at(0).count, 4U);
  EXPECT_EQ(all.coverage->marks.at(1).count, 6U);
  ASSERT_EQ(all.coverage->findings.size(), 2U);
  EXPECT_EQ(all.coverage->findings[0].count, 4U);
  ASSERT_EQ(all.coverage->curve.size(), 1U);
  EXPECT_EQ(all.coverage->curve[0].tuples, 9U);
  EXPECT_EQ(all.verdict, Verdict::kFail);
  EXPECT_TRUE(all.not_claimed.empty()) << "both shards are there";
  Coverage clean = *all.coverage;
  clean.findings.clear();
  clean.inconclusive = 0;
  EXPECT_TRUE(flaws_of(clean).empty()) << flaws_of(clean).front();
  EXPECT_NE(refusal({shard_of(1, 7, one)}).find("missing: 2"), std::string::npos);
  EXPECT_NE(refusal({shard_of(1, 7, one), shard_of(2, 7, two)}).find("different seeds"),
            std::string::npos);
}

TEST(Shards, add_properties_mutants_and_parts_of_other_work) {
  const Report sample = sample_report();
  Report scenarios = sample;
  scenarios.properties.clear();
  scenarios.mutants.clear();
  scenarios.matrix.reset();
  scenarios.exhaustive.clear();
  scenarios.coverage.reset();
  Report rest = sample;
  rest.scenarios.clear();
  rest.skipped.clear();
  const Report all = joined({scenarios, rest});
  EXPECT_EQ(all.properties.size(), sample.properties.size());
  EXPECT_EQ(all.mutants.size(), sample.mutants.size());
  EXPECT_EQ(all.exhaustive.size(), sample.exhaustive.size());
  EXPECT_TRUE(all.matrix && all.coverage);
  EXPECT_NE(refusal({rest, rest}), "");
}

}  // namespace
}  // namespace reprise::reports
