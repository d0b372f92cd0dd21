#include <gtest/gtest.h>

#include <algorithm>
#include <pugixml.hpp>

#include "reports/report.hpp"

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
  report.scenarios = {scenario("good", Verdict::kPass), scenario("bad", Verdict::kFail)};
  report.scenarios[1].code = "ZERO_FILL";
  report.scenarios[1].reason = "zeros";
  report.scenarios[1].replay = "reprise run f.yaml";
  EXPECT_EQ(to_junit(report, "abc"), R"(<?xml version="1.0"?>
<testsuites>
  <testsuite name="reprise.sim" timestamp="2026-01-02T03:04:05Z" time="0" tests="2" failures="1" skipped="0">
    <properties>
      <property name="report_sha256" value="abc" />
    </properties>
    <testcase classname="f.yaml" name="good" time="0" />
    <testcase classname="f.yaml" name="bad" time="0">
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

}  // namespace
}  // namespace reprise::reports
