#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "reports/pages/pages.hpp"
#include "tests/reports/pages/failing_report.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

std::int64_t count_of(const std::string& text, const std::string& part) {
  std::int64_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Summary, begins_with_the_verdict_and_is_read_as_text) {
  const std::string text = to_summary(sample_report(), "abc");
  EXPECT_THAT(text, testing::StartsWith("# Reprise: pass\n\n    ran          "));
  EXPECT_THAT(text, HasSubstr("\n    commit       " + std::string(kSampleCommit)));
  EXPECT_THAT(text, HasSubstr("\n    pass  fail  other  elements  seconds  file\n"));
  EXPECT_THAT(text, HasSubstr("\n    1     0     0      200       0.1      scenarios/one.yaml\n"));
  EXPECT_THAT(text, Not(HasSubstr("Left out to save space")));
  for (const char* sign : {"<", "&#", "|"}) EXPECT_THAT(text, Not(HasSubstr(sign)));
  Report bare = sample_report();
  bare.coverage.reset();
  EXPECT_THAT(to_summary(bare, ""), HasSubstr("\n    random timelines   not run"));
}

TEST(Summary, text_of_a_report_never_becomes_markdown_or_html) {
  // Markdown takes a line after four blanks as it is; all others are the program's own.
  std::istringstream lines(to_summary(failing_report(kAwkward), ""));
  std::vector<std::string> others;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && !line.starts_with("    ")) others.push_back(line);
  }
  EXPECT_THAT(others, testing::ElementsAre("# Reprise: fail", "## Causes",
                                           "## What this report covers", "## Files"));
  EXPECT_EQ(count_of(to_summary(failing_report(kAwkward), ""), "\n"),
            count_of(to_summary(failing_report("x"), ""), "\n"));
  EXPECT_THAT(to_summary(failing_report(kAwkward), ""), Not(HasSubstr("\x1b")));
}

TEST(Summary, lists_fields_and_findings_of_a_failure_and_second_tries) {
  Report report = sample_report();
  report.scenarios[0].verdict = Verdict::kFail;
  Failure& failure = report.scenarios[0].failure.emplace();
  failure.key = "cursor";
  failure.saved = "3";
  for (int i = 0; i < 25; ++i) {
    failure.consequences.push_back({.code = "LOST_OBJECT", .text = "key" + std::to_string(i)});
  }
  report.scenarios[1].earlier_tries = {{.code = "HANG", .reason = "late"}};
  const std::string text = to_summary(report, "");
  EXPECT_THAT(text, HasSubstr("       key    cursor\n       saved  3\n       then   "));
  EXPECT_THAT(text, HasSubstr("key16\n       then   8 more findings, in report.json\n"));
  EXPECT_THAT(text, HasSubstr("## Passed on the second try\n\n    two  HANG: late\n"));
}

TEST(Summary, has_one_entry_for_each_cause_and_names_the_others) {
  Report report{.lane = ReportLane::kSim, .verdict = Verdict::kFail, .planned = 20};
  for (int i = 0; i < 20; ++i) {
    report.scenarios.push_back({.name = "s" + std::to_string(i),
                                .verdict = Verdict::kFail,
                                .code = i == 15 ? "HANG" : "ZERO_FILL",
                                .reason = "rank " + std::to_string(i)});
  }
  const std::string text = to_summary(report, "");
  EXPECT_THAT(text, HasSubstr("\n    problems     20 of 2 causes\n"));
  EXPECT_THAT(text, HasSubstr("\n    1. ZERO_FILL (fail)\n       rank 0\n       in "));
  EXPECT_THAT(text, HasSubstr("18 more: s1, s2, s3, s4, s5, s6 and 12 more\n"));
  EXPECT_THAT(text, HasSubstr("\n    2. HANG (fail)\n       rank 15\n"));
}

TEST(Summary, whole_rows_are_cut_and_counted) {
  Report report = sample_report();
  const ScenarioResult one = report.scenarios[0];
  report.scenarios.clear();
  for (int i = 0; i < 20'000; ++i) {
    report.scenarios.push_back(one);
    report.scenarios.back().file = "row-" + std::to_string(i) + std::string(50, '-');
  }
  report.planned = report.scenarios.size();
  report.skipped.clear();
  const std::string text = to_summary(report, "");
  EXPECT_LE(text.size(), kSummaryBytesMax);
  EXPECT_GT(text.size(), kSummaryBytesMax - 4096);
  std::smatch cut;
  ASSERT_TRUE(std::regex_search(text, cut, std::regex("Left out to save space: ([0-9,]+) rows?")));
  std::string digits = cut[1];
  std::erase(digits, ',');
  EXPECT_EQ(count_of(text, "  row-") + std::stoll(digits), 20'000);
}

TEST(Summary, is_never_longer_than_asked_and_never_cuts_in_silence) {
  Report report = failing_report(std::string(5000, 'x'));
  const auto whole = to_summary(report, "");
  EXPECT_THAT(whole, Not(HasSubstr("Left out to")));
  for (std::size_t most = 1024; most < whole.size(); most += 997) {
    const std::string text = to_summary(report, "", {}, most);
    EXPECT_LE(text.size(), most);
    EXPECT_THAT(text, HasSubstr("Left out to save space"));
  }
}

TEST(Annotations, name_file_line_and_title_and_escape_them) {
  Report report{.lane = ReportLane::kSim, .verdict = Verdict::kFail};
  report.scenarios = {{.name = "a: b, c",
                       .file = "f,g:h%.yaml",
                       .verdict = Verdict::kFail,
                       .code = "ZERO_FILL",
                       .reason = "100% zeros\r\nin a",
                       .replay = "reprise run x"}};
  report.planned = 1;
  EXPECT_THAT(
      annotations_of(report),
      testing::ElementsAre("::error file=f%2Cg%3Ah%25.yaml,line=1,title=sim%3A fail%3A a%3A "
                           "b%2C c::ZERO_FILL: 100%25 zeros%0D%0Ain a%0Asee it again: "
                           "reprise run x"));
}

TEST(Annotations, an_unreadable_file_is_named_with_the_line_of_its_mistake) {
  Report report{.lane = ReportLane::kSim, .verdict = Verdict::kInconclusive, .planned = 2};
  const std::string why = "its file can't be read: ";
  report.scenarios = {{.name = "a", .file = "m/a b.yaml", .code = "USAGE"},
                      {.name = "b", .file = "m/b.yaml", .code = "USAGE", .reason = why + "EACCES"}};
  report.scenarios[0].reason = why + "m/a b.yaml:12:5: no 'sead' (and 2 more)";
  for (const auto& result : report.scenarios) {
    report.skipped.push_back({result.name, result.reason});
  }
  EXPECT_THAT(
      annotations_of(report),
      testing::ElementsAre(
          "::error file=m/a b.yaml,line=12,title=sim%3A not_run%3A a::USAGE: its file can't be "
          "read: m/a b.yaml:12:5: no 'sead' (and 2 more)%0Asee it again: reprise run "
          "'m/a b.yaml' --dry-run",
          "::error file=m/b.yaml,line=1,title=sim%3A not_run%3A b::USAGE: its file can't be read: "
          "EACCES%0Asee it again: reprise run m/b.yaml --dry-run"));
  EXPECT_THAT(to_html(report, ""), HasSubstr("reprise run m/b.yaml --dry-run"));
  EXPECT_THAT(to_summary(report, "", {}, 10'000), HasSubstr("Causes"));
}

TEST(Annotations, have_one_of_each_cause_before_the_others) {
  Report report{.lane = ReportLane::kSim, .verdict = Verdict::kFail};
  for (int i = 0; i < 20; ++i) {
    report.scenarios.push_back({.name = "s" + std::to_string(i),
                                .verdict = Verdict::kFail,
                                .code = i == 15 ? "HANG" : "ZERO_FILL",
                                .reason = "rank " + std::to_string(i)});
  }
  report.planned = 20;
  const auto lines = annotations_of(report);
  EXPECT_THAT(lines[0], HasSubstr("fail%3A s0::"));
  EXPECT_THAT(lines[1], HasSubstr("fail%3A s15::"));
}

TEST(Annotations, nine_are_shown_and_the_rest_is_counted) {
  Report report{.lane = ReportLane::kSim, .verdict = Verdict::kFail};
  for (int i = 0; i < 30; ++i) {
    report.scenarios.push_back({.name = "s" + std::to_string(i),
                                .verdict = i < 25 ? Verdict::kInconclusive : Verdict::kFail,
                                .reason = std::string(1, static_cast<char>('a' + i % 26))});
  }
  report.planned = 30;
  const auto lines = annotations_of(report);
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_THAT(lines[0], HasSubstr("fail%3A s25"));
  EXPECT_THAT(lines[5], HasSubstr("inconclusive%3A s0"));
  EXPECT_EQ(lines[9], "::error title=21 more::21 more problems are in report.html");
}

TEST(Annotations, a_pass_has_none_and_whatever_is_no_pass_has_one) {
  EXPECT_THAT(annotations_of(sample_report()), testing::IsEmpty());
  Report empty;
  EXPECT_EQ(annotations_of(empty).size(), 1U);
  Report doubled = sample_report();
  take_another_course(doubled.scenarios[0]);
  EXPECT_THAT(annotations_of(doubled), Not(testing::IsEmpty()));
  for (const auto& line : annotations_of(failing_report(kAwkward))) {
    EXPECT_TRUE(line.starts_with("::error ")) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace reprise::reports
