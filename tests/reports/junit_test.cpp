#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <pugixml.hpp>

#include "reports/report.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

ScenarioResult scenario(const std::string& name, Verdict verdict) {
  ScenarioResult result;
  result.name = name;
  result.file = "f.yaml";
  result.verdict = verdict;
  return result;
}

pugi::xml_node suite_of(pugi::xml_document& document, const std::string& text) {
  EXPECT_TRUE(document.load_string(text.c_str())) << text;
  return document.child("testsuites").child("testsuite");
}

TEST(Junit, looks_like_this) {
  Report report;
  report.lane = ReportLane::kSim;
  report.started = "2026-01-02T03:04:05Z";
  report.seconds = 12.3456;
  report.scenarios = {scenario("good", Verdict::kPass), scenario("bad", Verdict::kFail)};
  report.scenarios[1].seconds = 0.1;
  report.scenarios[1].code = "ZERO_FILL";
  report.scenarios[1].reason = "zeros";
  report.scenarios[1].replay = "reprise run f.yaml";
  EXPECT_EQ(to_junit(report, "abc"), R"(<?xml version="1.0"?>
<testsuites>
  <testsuite name="reprise.sim" timestamp="2026-01-02T03:04:05Z" time="12.346" tests="2" failures="1" errors="0" skipped="0">
    <properties>
      <property name="report_sha256" value="abc" />
    </properties>
    <testcase classname="f.yaml" name="good" time="0.000" />
    <testcase classname="f.yaml" name="bad" time="0.100">
      <failure type="ZERO_FILL" message="zeros">reprise run f.yaml</failure>
    </testcase>
  </testsuite>
</testsuites>
)");
}

TEST(Junit, what_did_not_pass_never_counts_as_passed) {
  using enum Verdict;
  Report report;
  report.scenarios = {scenario("a", kPass), scenario("b", kFail), scenario("c", kInconclusive),
                      scenario("d", kNotRun), scenario("e", kFail)};
  pugi::xml_document document;
  const auto suite = suite_of(document, to_junit(report, ""));
  EXPECT_EQ(suite.attribute("tests").as_int(), 5);
  EXPECT_EQ(suite.attribute("failures").as_int(), 2);
  EXPECT_EQ(suite.attribute("skipped").as_int(), 2);
  std::string marks;
  for (const auto test : suite.children("testcase")) {
    marks += test.child("failure") ? 'F' : test.child("skipped") ? 'S' : '.';
  }
  EXPECT_EQ(marks, ".FSSF");
  const auto skipped = suite.find_child_by_attribute("testcase", "name", "c").child("skipped");
  EXPECT_STREQ(skipped.attribute("message").as_string(), "inconclusive: ");
}

TEST(Junit, a_file_that_could_not_be_read_is_an_error) {
  Report report;
  report.scenarios = {scenario("a", Verdict::kPass), scenario("f", Verdict::kNotRun)};
  report.scenarios[1].code = "USAGE";
  report.scenarios[1].reason = "its file can't be read: f.yaml:3:5: no 'sead'";
  pugi::xml_document document;
  const auto suite = suite_of(document, to_junit(report, ""));
  EXPECT_EQ(suite.attribute("errors").as_int(), 1);
  EXPECT_EQ(suite.attribute("skipped").as_int(), 0);
  const auto error = suite.find_child_by_attribute("testcase", "name", "f").child("error");
  EXPECT_STREQ(error.attribute("type").as_string(), "USAGE");
  EXPECT_EQ(error.attribute("message").as_string(), report.scenarios[1].reason);
}

TEST(Junit, awkward_text_comes_back_as_it_was) {
  Report report;
  report.scenarios = {scenario("a < b & \"c\" 'd' > e", Verdict::kFail)};
  report.scenarios[0].reason = "[0:2, 4:6] -> <none> & \"quoted\"";
  report.scenarios[0].replay = "reprise run 'a b.yaml' --set x=1 && echo <ok> ]]>";
  pugi::xml_document document;
  const auto test = suite_of(document, to_junit(report, "")).child("testcase");
  EXPECT_EQ(test.attribute("name").as_string(), report.scenarios[0].name);
  EXPECT_EQ(test.child("failure").attribute("message").as_string(), report.scenarios[0].reason);
  EXPECT_EQ(test.child("failure").text().as_string(), report.scenarios[0].replay);
}

TEST(Junit, holds_no_letter_that_xml_does_not_have) {
  Report report{.lane = ReportLane::kFiles};
  report.scenarios.push_back({.name = "diff a\x1b[2K",
                              .file = "b\x01",
                              .verdict = Verdict::kFail,
                              .code = "C\x02",
                              .reason = "\xff\xef\xbf\xbe\xed\xa0\x80",
                              .replay = std::string("\0", 1)});
  report.scenarios.push_back({.name = "c", .verdict = Verdict::kNotRun, .reason = "\x7f\x1b"});
  const std::string text = to_junit(report, "");
  EXPECT_EQ(std::count_if(text.begin(), text.end(),
                          [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == '\x7f'; }),
            0);
  EXPECT_NE(text.find("diff a\\x1b[2K"), std::string::npos) << text;
  EXPECT_NE(text.find("\\xff\\ufffe\\ud800"), std::string::npos) << text;
}

// Jenkins refuses a file in which one of these is missing.
TEST(Junit, every_case_has_a_time_and_every_failure_a_type) {
  Report report = sample_report();
  report.scenarios[0].verdict = Verdict::kFail;  // without a code
  report.scenarios[1].seconds = std::numeric_limits<double>::infinity();
  report.properties[0].verdict = Verdict::kFail;
  report.mutants[0].caught = false;
  report.matrix->rows[0] = {.mutant = "m", .cells = "pp"};
  report.exhaustive[0].parts[0].wrong = 1;
  report.coverage->findings[0].status = "new";
  report.determinism_mismatches = 1;
  report.interrupted = true;
  pugi::xml_document document;
  const auto suite = suite_of(document, to_junit(report, ""));
  EXPECT_EQ(suite.attribute("failures").as_int(), 7);
  EXPECT_EQ(suite.attribute("errors").as_int(), 1);
  int explained = 0;
  for (const auto test : suite.children("testcase")) {
    const std::string time = test.attribute("time").as_string();
    ASSERT_GE(time.size(), 5U) << test.attribute("name").as_string();
    EXPECT_EQ(time.find_first_not_of("0123456789."), std::string::npos) << time;
    EXPECT_EQ(time.size() - time.find('.'), 4U) << time;
    for (const auto child : test.children()) {
      const std::string name = child.name();
      if (name != "failure" && name != "error") continue;
      ++explained;
      EXPECT_STRNE(child.attribute("type").as_string(), "") << test.attribute("name").as_string();
    }
  }
  EXPECT_EQ(explained, 8);
}

TEST(Junit, a_report_that_is_red_for_chance_or_a_signal_alone_is_red) {
  Report report{.lane = ReportLane::kSim};
  report.scenarios = {scenario("a", Verdict::kPass)};
  report.runs_doubled = 1;
  pugi::xml_document document;
  const auto green = suite_of(document, to_junit(report, ""));
  EXPECT_EQ(green.attribute("tests").as_int(), 2);
  EXPECT_EQ(green.attribute("failures").as_int() + green.attribute("errors").as_int(), 0);
  report.determinism_mismatches = 1;
  EXPECT_EQ(suite_of(document, to_junit(report, "")).attribute("failures").as_int(), 1);
  report.determinism_mismatches = 0;
  report.interrupted = true;
  EXPECT_EQ(suite_of(document, to_junit(report, "")).attribute("errors").as_int(), 1);
}

}  // namespace
}  // namespace reprise::reports
