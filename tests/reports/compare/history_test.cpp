// Tests the history of several reports.

#include "reports/compare/history.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/reports/sample_report.hpp"

namespace reprise::reports::history_test {
namespace {

Submission night(const std::string& file, const std::string& started, Verdict one) {
  Report report = sample_report();
  report.project.commit = std::string(40, file[0]);
  report.started = started;
  report.scenarios[0].verdict = one;
  if (one != Verdict::kPass) report.scenarios[0].code = "HANG";
  report.verdict = overall(report);
  return {.file = file, .report = report};
}

TEST(History, has_one_letter_per_report_from_the_oldest_to_the_newest) {
  std::vector<Submission> nights = {
      night("c", "2026-01-03T00:00:00Z", Verdict::kFail),
      night("a", "2026-01-01T00:00:00Z", Verdict::kPass),
      night("d", "2026-01-04T00:00:00Z", Verdict::kPass),
      night("b", "2026-01-02T00:00:00Z", Verdict::kInconclusive),
  };
  nights[1].report->skipped.push_back({"late", "no MPI"});
  nights[2].report->scenarios.push_back(sample_scenario("late"));
  const ReportHistory history = history_of(nights, {});
  std::string files;
  for (const auto& one : history.reports) files += one.file;
  EXPECT_EQ(files, "abcd");
  ASSERT_EQ(history.strips.size(), 2U);
  EXPECT_EQ(history.strips[0].scenario, "late");
  EXPECT_EQ(history.strips[0].letters, "N..P");
  EXPECT_EQ(history.strips[1].scenario, "one");
  EXPECT_EQ(history.strips[1].letters, "PIFP");
  EXPECT_TRUE(history.worse.empty());
  const auto json = nlohmann::json::parse(to_json(history));
  EXPECT_EQ(json["reports"][0]["file"], "a");
  EXPECT_EQ(json["reports"][0]["seconds"], 12.25);
  EXPECT_EQ(json["reports"][2]["verdict"], "fail");
  EXPECT_EQ(json["changed"][1], (nlohmann::json{{"scenario", "one"}, {"letters", "PIFP"}}));
  EXPECT_TRUE(json["worse"].empty());
}

TEST(History, is_worse_if_the_newest_is_worse_than_any_before_it) {
  const ReportHistory history = history_of(
      {night("a", "2026-01-01", Verdict::kPass), night("b", "2026-01-02", Verdict::kFail),
       night("c", "2026-01-03", Verdict::kFail)},
      {});
  ASSERT_EQ(history.worse.size(), 2U);
  EXPECT_EQ(history.worse[0].subject, "the report");
  EXPECT_EQ(history.worse[1].subject, "one");
  EXPECT_EQ(history.worse[1].what, "newly failing");
  EXPECT_EQ(history.strips[0].letters, "PFF");
  EXPECT_EQ(nlohmann::json::parse(to_json(history))["worse"].size(), 2U);
}

TEST(History, tells_each_change_once) {
  auto lacking = night("c", "2026-01-03", Verdict::kPass);
  lacking.report->properties.clear();
  const ReportHistory history = history_of(
      {night("a", "2026-01-01", Verdict::kPass), night("b", "2026-01-02", Verdict::kPass), lacking},
      {});
  EXPECT_EQ(history.worse.size(), 2U) << "two properties, although two reports have them";
}

TEST(History, tells_each_lost_mark) {
  auto lacking = night("c", "2026-01-03", Verdict::kPass);
  ASSERT_GT(lacking.report->coverage->marks.size(), 1U);
  const auto marks = lacking.report->coverage->marks.size();
  lacking.report->coverage->marks.clear();
  const ReportHistory history = history_of(
      {night("a", "2026-01-01", Verdict::kPass), night("b", "2026-01-02", Verdict::kPass), lacking},
      {});
  const auto lost = std::count_if(history.worse.begin(), history.worse.end(),
                                  [](const auto& one) { return one.what == "lost mark"; });
  EXPECT_EQ(static_cast<std::size_t>(lost), marks);
}

}  // namespace
}  // namespace reprise::reports::history_test
