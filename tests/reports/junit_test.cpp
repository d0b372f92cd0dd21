#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <string_view>

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
  report.scenarios = {scenario("placements/good[k=a/b]", Verdict::kPass),
                      scenario("bad", Verdict::kFail)};
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
    <testcase classname="reprise.placements" name="placements/good[k=a/b]" time="0.000" />
    <testcase classname="reprise" name="bad" time="0.100">
      <failure type="ZERO_FILL" message="zeros">bad: ZERO_FILL: zeros
  explained by: reprise explain ZERO_FILL
  see it again: reprise run f.yaml
</failure>
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
  EXPECT_EQ(suite.attribute("errors").as_int(), 1);
  EXPECT_EQ(suite.attribute("skipped").as_int(), 1);
  std::string marks;
  for (const auto test : suite.children("testcase")) {
    const std::string child = test.first_child().name();
    marks += child.empty() ? "." : child.substr(0, 1);
  }
  EXPECT_EQ(marks, ".fesf");
  const auto error = suite.find_child_by_attribute("testcase", "name", "c").child("error");
  EXPECT_STREQ(error.attribute("message").as_string(), "inconclusive: ");
  EXPECT_STREQ(error.attribute("type").as_string(), "inconclusive");
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
  EXPECT_EQ(test.child("failure").text().as_string(), to_block(report.scenarios[0]));
}

TEST(Junit, has_each_finding_and_each_field_of_a_failure) {
  Report report;
  report.scenarios = {scenario("a", Verdict::kFail), scenario("b", Verdict::kInconclusive)};
  for (auto& result : report.scenarios) {
    result.code = "LOST_OBJECT";
    result.replay = "reprise run f.yaml";
    Failure& failure = result.failure.emplace();
    failure.key = "sched.last_epoch";
    failure.saved = "3";
    failure.loaded = "0";
    for (int i = 0; i < 16; ++i) {
      failure.consequences.push_back({.code = "LOST_OBJECT", .text = "key " + std::to_string(i)});
    }
  }
  pugi::xml_document document;
  const auto suite = suite_of(document, to_junit(report, ""));
  for (const auto test : suite.children("testcase")) {
    const auto said = test.first_child();
    const std::string text = said.text().as_string();
    EXPECT_NE(text.find("  key:          sched.last_epoch\n"), std::string::npos) << text;
    EXPECT_NE(text.find("  saved:        3\n"), std::string::npos) << text;
    for (int i = 0; i < 16; ++i) {
      EXPECT_NE(text.find("LOST_OBJECT: key " + std::to_string(i) + "\n"), std::string::npos) << i;
    }
    EXPECT_TRUE(text.ends_with("see it again: reprise run f.yaml\n")) << text;
  }
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
  take_another_course(report.scenarios[2]);
  report.interrupted = true;
  pugi::xml_document document;
  const auto suite = suite_of(document, to_junit(report, ""));
  EXPECT_EQ(suite.attribute("failures").as_int(), 8);
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
  EXPECT_EQ(explained, 9);
}

/// Says what the schema of Jenkins' JUnit files allows of an element, as far as reports use it.
struct ElementRule {
  std::set<std::string> required;
  std::set<std::string> allowed;  ///< besides the required attributes
  std::set<std::string> children;
  bool text = false;
};

const std::map<std::string, ElementRule>& rules_of_jenkins() {
  static const std::map<std::string, ElementRule> rules = {
      {"testsuites",
       {{}, {"name", "time", "tests", "failures", "errors", "disabled"}, {"testsuite"}}},
      {"testsuite",
       {{"name", "tests"},
        {"failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id",
         "package"},
        {"properties", "testcase", "system-out", "system-err"}}},
      {"properties", {{}, {}, {"property"}}},
      {"property", {{"name", "value"}, {}, {}}},
      {"testcase",
       {{"name", "time"},
        {"classname", "assertions", "status"},
        {"skipped", "error", "failure", "system-out", "system-err"}}},
      {"skipped", {{}, {"message", "type"}, {}, true}},
      {"error", {{"type"}, {"message"}, {}, true}},
      {"failure", {{"type"}, {"message"}, {}, true}},
      {"system-out", {{}, {}, {}, true}},
      {"system-err", {{}, {}, {}, true}}};
  return rules;
}

bool is_time(const std::string& text) {
  const auto point = text.find('.');
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return point != std::string::npos && digits(text.substr(0, point)) &&
         digits(text.substr(point + 1)) && text.size() - point - 1 <= 3;
}

void expect_rules_hold(pugi::xml_node node) {
  const std::string name = node.name();
  ASSERT_TRUE(rules_of_jenkins().contains(name)) << name;
  const ElementRule& rule = rules_of_jenkins().at(name);
  for (const auto& attribute : rule.required) {
    EXPECT_TRUE(node.attribute(attribute.c_str())) << name << " lacks " << attribute;
  }
  for (const auto attribute : node.attributes()) {
    const std::string which = attribute.name();
    EXPECT_TRUE(rule.required.contains(which) || rule.allowed.contains(which)) << name << which;
    const std::string value = attribute.as_string();
    EXPECT_TRUE(which != "time" || is_time(value)) << name << ": " << value;
    EXPECT_TRUE(which != "type" || !value.empty()) << name;
    static const std::set<std::string> kCounts = {"tests", "failures", "errors", "skipped"};
    EXPECT_TRUE(!kCounts.contains(which) || value == std::to_string(attribute.as_uint())) << value;
  }
  for (const auto child : node.children()) {
    if (child.type() == pugi::node_pcdata) {
      EXPECT_TRUE(rule.text) << name << " has text";
      continue;
    }
    EXPECT_TRUE(rule.children.contains(child.name())) << name << " has a " << child.name();
    expect_rules_hold(child);
  }
}

TEST(Junit, keeps_the_rules_of_jenkins) {
  Report red = sample_report();
  red.scenarios[0].verdict = Verdict::kFail;
  red.scenarios[1].verdict = Verdict::kInconclusive;
  red.scenarios[1].seconds = 123456.789;
  red.scenarios[2].verdict = Verdict::kNotRun;
  red.scenarios[2].code = "USAGE";
  red.properties[0].verdict = Verdict::kFail;
  red.mutants[0].caught = false;
  red.matrix->rows[0] = {.mutant = "m", .cells = "pp"};
  red.exhaustive[0].parts[0].wrong = 1;
  red.coverage->findings[0].status = "new";
  take_another_course(red.scenarios[1]);
  red.interrupted = true;
  for (const auto& report : {Report{}, sample_report(), red}) {
    pugi::xml_document document;
    const auto suite = suite_of(document, to_junit(report, "abc"));
    expect_rules_hold(document.child("testsuites"));
    const auto properties = suite.child("properties").children("property");
    EXPECT_LE(std::distance(properties.begin(), properties.end()), 10);
  }
}

TEST(Junit, says_that_a_scenario_passed_at_its_second_try) {
  Report report;
  report.scenarios = {scenario("a", Verdict::kPass), scenario("b", Verdict::kPass)};
  report.scenarios[1].earlier_tries = {{.code = "HANG", .reason = "late"}};
  pugi::xml_document document;
  const auto suite = suite_of(document, to_junit(report, ""));
  EXPECT_FALSE(suite.find_child_by_attribute("testcase", "name", "a").child("system-out"));
  const auto note = suite.find_child_by_attribute("testcase", "name", "b").child("system-out");
  EXPECT_NE(std::string(note.text().as_string()).find("HANG: late"), std::string::npos);
  EXPECT_EQ(suite.attribute("failures").as_int(), 0);
  expect_rules_hold(document.child("testsuites"));
}

TEST(Junit, of_two_checkpoints_that_differ_has_a_type_that_says_so) {
  Report report{.lane = ReportLane::kFiles};
  report.scenarios = {scenario("diff a b", Verdict::kFail)};
  pugi::xml_document document;
  const auto test = suite_of(document, to_junit(report, "")).child("testcase");
  EXPECT_STREQ(test.child("failure").attribute("type").as_string(), "different");
}

TEST(Junit, of_10000_long_failures_is_below_30_mb_and_says_what_is_cut) {
  Report report;
  for (int i = 0; i < 10'000; ++i) {
    report.scenarios.push_back(scenario("table[k=" + std::to_string(i) + "]", Verdict::kFail));
    auto& result = report.scenarios.back();
    for (int line = 0; line < 50; ++line) {
      result.reason += "<rank 3> holds \"\xc3\xa4\" & not what was saved\n";
      result.replay += "reprise run 'a & b' --seed 1 ";
    }
  }
  const std::string text = to_junit(report, "abc");
  EXPECT_LT(text.size(), 30'000'000U);
  EXPECT_GT(text.size(), 20'000'000U) << "more was cut than had to be";
  pugi::xml_document document;
  const auto suite = suite_of(document, text);
  EXPECT_EQ(suite.attribute("tests").as_int(), 10'000);
  const std::string message = suite.child("testcase").child("failure").attribute("message").value();
  EXPECT_EQ(message.find("<rank 3> holds \"\xc3\xa4\" & not what was saved\n"), 0U) << message;
  const std::string note = "... (cut; the whole text is in report.json)";
  EXPECT_EQ(message.substr(message.size() - note.size()), note);
}

TEST(Junit, is_cut_between_characters_and_only_as_far_as_it_must) {
  Report report;
  report.scenarios = {scenario("a", Verdict::kFail)};
  const std::string whole = to_junit(report, "");
  EXPECT_EQ(to_junit(report, "", 10), to_junit(report, "", 0)) << "names are never cut";
  for (int i = 0; i < 200; ++i) report.scenarios[0].reason += "\xc3\xa4";
  for (std::size_t most = whole.size() + 100; most < whole.size() + 600; ++most) {
    const std::string text = to_junit(report, "", most);
    EXPECT_LE(text.size(), most);
    pugi::xml_document document;
    const std::string message =
        suite_of(document, text).child("testcase").child("failure").attribute("message").value();
    EXPECT_EQ(message.find("\\x"), std::string::npos);
    EXPECT_EQ(message.find("\xc3."), std::string::npos) << "a half character";
  }
}

TEST(Junit, a_report_that_is_red_for_chance_or_a_signal_alone_is_red) {
  Report report{.lane = ReportLane::kSim};
  report.scenarios = {scenario("a", Verdict::kPass)};
  report.scenarios[0].doubled = true;
  pugi::xml_document document;
  const auto green = suite_of(document, to_junit(report, ""));
  EXPECT_EQ(green.attribute("tests").as_int(), 2);
  EXPECT_EQ(green.attribute("failures").as_int() + green.attribute("errors").as_int(), 0);
  take_another_course(report.scenarios[0]);
  EXPECT_EQ(suite_of(document, to_junit(report, "")).attribute("failures").as_int(), 2)
      << "the scenario and the count";
  report.interrupted = true;
  EXPECT_EQ(suite_of(document, to_junit(report, "")).attribute("errors").as_int(), 1);
}

}  // namespace
}  // namespace reprise::reports
