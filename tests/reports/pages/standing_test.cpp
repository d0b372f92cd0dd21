// Tests what earlier reports say of a report's problems, and where it is shown.

#include "reports/pages/standing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/pages/pages.hpp"
#include "tests/reports/pages/drawn_page.hpp"
#include "tests/reports/pages/failing_report.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Returns a report in which each scenario ended as its letter says. A dot leaves it out.
Report report_of(const std::vector<std::pair<std::string, char>>& ends, int day) {
  Report report{.started = "2026-01-0" + std::to_string(day) + "T00:00:00Z", .seconds = 1};
  for (const auto& [name, letter] : ends) {
    if (letter == '.') continue;
    ScenarioResult result = sample_scenario(name);
    result.verdict = letter == 'P'   ? Verdict::kPass
                     : letter == 'F' ? Verdict::kFail
                     : letter == 'I' ? Verdict::kInconclusive
                                     : Verdict::kNotRun;
    if (result.verdict != Verdict::kPass) result.reason = "because";
    if (letter == 'F') result.code = "HANG";
    if (letter == 'N') {
      report.skipped.push_back({name, "because"});
      result = {.name = name, .verdict = Verdict::kNotRun, .reason = "because"};
    }
    report.scenarios.push_back(result);
  }
  report.planned = report.scenarios.size();
  report.verdict = overall(report);
  return report;
}

/// Returns a report per letter of the strips; the last of them is this report.
std::vector<Report> reports_of(const std::vector<std::string>& strips) {
  std::vector<Report> reports;
  for (std::size_t at = 0; at < strips.front().size(); ++at) {
    std::vector<std::pair<std::string, char>> ends;
    for (const auto& strip : strips) ends.emplace_back("s-" + strip, strip[at]);
    reports.push_back(report_of(ends, static_cast<int>(at) + 1));
  }
  return reports;
}

std::vector<PastReport> past_of(const std::vector<Report>& reports) {
  std::vector<PastReport> past;
  for (std::size_t i = 0; i + 1 < reports.size(); ++i) {
    past.push_back(past_report_of("night " + std::to_string(i), reports[i]));
  }
  return past;
}

std::string status_in(const std::string& strip) {
  const auto reports = reports_of({strip});
  const Standing standing(reports.back(), past_of(reports));
  const auto status = standing.status_of("s-" + strip);
  return status ? name_of(*status) : "none";
}

TEST(Standing, a_problem_is_new_ongoing_or_rare_by_its_strip) {
  const std::pair<const char*, const char*> rows[] = {
      {"PPF", "new"},     {"..F", "new"},     {"NNF", "new"},     {"PF", "new"},
      {"PFF", "ongoing"}, {"FFF", "ongoing"}, {"FNF", "ongoing"}, {"PII", "ongoing"},
      {"FI", "ongoing"},  {"PFPF", "rare"},   {"FPF", "rare"},    {"FPFF", "rare"},
      {"IPNF", "rare"},   {"F", "none"}};
  for (const auto& [strip, status] : rows) EXPECT_EQ(status_in(strip), status) << strip;
}

TEST(Standing, resolved_needs_a_problem_in_the_last_run_and_a_pass_now) {
  const auto reports = reports_of({"FPP", "PFP", "FNP", "PIP", "PPP", "PPF", "FFN", "FF."});
  const Standing standing(reports.back(), past_of(reports));
  std::vector<std::string> resolved;
  for (const auto& strip : standing.resolved()) resolved.push_back(strip.letters);
  EXPECT_THAT(resolved, ElementsAre("FNP", "PFP", "PIP"));
  std::vector<std::string> unsteady;
  for (const auto& strip : standing.unsteady()) unsteady.push_back(strip.letters);
  EXPECT_THAT(unsteady, ElementsAre("FF.", "FFN", "FPP")) << "neither a problem nor resolved";
}

TEST(Standing, earlier_reports_are_put_in_order_by_their_start) {
  const auto reports = reports_of({"PFF"});
  auto past = past_of(reports);
  std::swap(past[0], past[1]);
  const Standing standing(reports.back(), past);
  EXPECT_EQ(standing.letters_of("s-PFF"), "PFF");
  EXPECT_EQ(standing.letters_of("nobody"), "...");
  ASSERT_EQ(standing.reports().size(), 3U);
  EXPECT_EQ(standing.reports()[0].file, "night 0");
  EXPECT_EQ(standing.reports()[2].file, "this report");
}

TEST(Standing, properties_mutants_and_unsupported_claims_have_letters) {
  Report report = sample_report();
  report.properties[0].verdict = Verdict::kFail;
  report.mutants[1].caught = false;
  report.scenarios[0].ranks[0].bit_mismatches = 1;  // it claims a pass
  take_another_course(report.scenarios[2]);
  const Letters letters = past_report_of("r", report).letters;
  EXPECT_EQ(letters.at("property continuity"), 'F');
  EXPECT_EQ(letters.at("property round-trip"), 'P');
  EXPECT_EQ(letters.at("mutant floor-vs-ceil-chunk"), 'P');
  EXPECT_EQ(letters.at("mutant stale-plan"), 'F');
  EXPECT_EQ(letters.at("one"), 'F');
  EXPECT_EQ(letters.at("two"), 'P');
  EXPECT_EQ(letters.at("skipped"), 'N');
  EXPECT_EQ(letters.at("determinism"), 'F');
  const Standing standing(sample_report(), std::vector{past_report_of("r", report)});
  std::vector<std::string> resolved;
  for (const auto& strip : standing.resolved()) resolved.push_back(strip.scenario);
  EXPECT_THAT(resolved,
              ElementsAre("cut-short", "mutant stale-plan", "one", "property continuity"));
}

TEST(Standing, the_page_has_status_and_strip_of_problems_and_the_resolved) {
  if (!has_browser()) GTEST_SKIP() << "no chromium: apt-get install chromium";
  auto reports = reports_of({"PPF", "FPF", "FFI", "PFP", "FPP"});
  for (auto& result : reports.back().scenarios) result.reason = result.name;  // each is a cause
  for (auto& result : reports.back().scenarios) {
    if (result.verdict == Verdict::kPass) result.reason.clear();
  }
  const DrawnPage page(reports.back(), past_of(reports));
  const std::pair<const char*, const char*> rows[] = {
      {"s-PPF", "new"}, {"s-FPF", "rare"}, {"s-FFI", "ongoing"}};
  for (const auto& [name, status] : rows) {
    const std::string card = "//article[p/strong='" + std::string(name) + "']";
    EXPECT_THAT(page.texts(card + "/h3/span[@class='status " + status + "']"), ElementsAre(status));
    EXPECT_THAT(page.texts(card + "/p/span[@class='strip']"),
                ElementsAre(std::string(name).substr(2)));
  }
  EXPECT_EQ(page.all("//article//span[@class='strip']/span[@class='F']").size(), 5U);
  EXPECT_THAT(page.texts("//section[@id='history']/h3"), ElementsAre("Resolved: 1"));
  EXPECT_THAT(page.texts("//section[@id='history']/div//tbody/tr"), ElementsAre("s-PFPPFP"));
  EXPECT_THAT(page.text(), HasSubstr("not always alike: 1</summary>"));
  EXPECT_THAT(page.text(), HasSubstr("<td>night 0</td><td>2026-01-01T00:00:00Z</td>"));
}

TEST(Standing, without_earlier_reports_nothing_is_said) {
  const auto reports = reports_of({"F"});
  EXPECT_THAT(to_html(reports.back(), ""), HasSubstr("\"history\":null"));
  const std::string summary = to_summary(reports.back(), "");
  EXPECT_THAT(summary, HasSubstr(" (fail)\n"));
  EXPECT_THAT(summary, Not(HasSubstr("history")));
  const Standing standing(reports.back(), {});
  EXPECT_THAT(standing.resolved(), IsEmpty());
  EXPECT_THAT(standing.unsteady(), IsEmpty());
}

TEST(Standing, the_summary_has_status_and_strip_and_what_was_resolved) {
  const auto reports = reports_of({"PPF", "PFP"});
  const std::string summary = to_summary(reports.back(), "", past_of(reports));
  EXPECT_THAT(summary, HasSubstr(" (fail, new)\n"));
  EXPECT_THAT(summary, HasSubstr("       history       PPF\n"));
  EXPECT_THAT(summary, HasSubstr("## Resolved\n\n    PFP  s-PFP\n"));
}

TEST(Standing, annotations_begin_with_new_problems) {
  const auto reports = reports_of({"FF", "PF"});
  const auto lines = annotations_of(reports.back(), past_of(reports));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("title=sim%3A fail (new)%3A s-PF::"));
  EXPECT_THAT(lines[1], HasSubstr("title=sim%3A fail (ongoing)%3A s-FF::"));
  const auto plain = annotations_of(reports.back());
  EXPECT_THAT(plain[0], HasSubstr("title=sim%3A fail%3A s-FF::")) << "the order of the report";
}

TEST(Standing, text_of_an_earlier_report_never_becomes_a_part_of_the_page) {
  const Report report = failing_report(kAwkward);
  Report before = report;
  before.started = "2026-01-01";
  before.scenarios[0].name = std::string(kAwkward) + "other";
  before.scenarios[0].verdict = Verdict::kPass;
  const std::string page = to_html(report, "", std::vector{past_report_of(kAwkward, before)});
  EXPECT_THAT(page, Not(HasSubstr("<b onclick")));
  EXPECT_THAT(page, HasSubstr("\"history\":{"));
}

}  // namespace
}  // namespace reprise::reports
