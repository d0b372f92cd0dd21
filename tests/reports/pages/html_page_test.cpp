#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/pages/pages.hpp"
#include "tests/reports/pages/failing_report.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Returns the tags of a page with the names of their attributes, one per line. Text between tags,
/// quoted values, and the style sheet and the script of the page are left out.
std::string tags_of(const std::string& html) {
  std::string tags;
  bool inside = false;
  bool quoted = false;
  for (std::size_t i = 0; i < html.size(); ++i) {
    if (html.compare(i, 7, "<style>") == 0) i = html.find("</style>", i);
    if (html.compare(i, 8, "<script>") == 0) i = html.find("</script>", i);
    const char letter = html[i];
    if (!quoted && letter == '<') inside = true;
    if (inside && letter == '"') quoted = !quoted;
    if (inside && !quoted) tags += letter;
    if (!quoted && letter == '>') {
      inside = false;
      tags += '\n';
    }
  }
  return tags;
}

std::size_t place_of(const std::string& page, const std::string& text) {
  const auto at = page.find(text);
  EXPECT_NE(at, std::string::npos) << text;
  return at;
}

TEST(HtmlPage, text_of_a_report_never_becomes_a_part_of_the_page) {
  // About as long as the other text, because wide pictures have a class of their own.
  const std::string plain = to_html(failing_report(std::string(100, 'x')), "abc");
  const std::string awkward = to_html(failing_report(kAwkward), "abc");
  EXPECT_TRUE(tags_of(awkward) == tags_of(plain)) << "too long to be printed";
  EXPECT_GT(tags_of(plain).size(), 5000U);
  EXPECT_THAT(awkward, Not(HasSubstr("<b onclick")));
  EXPECT_THAT(awkward, HasSubstr("&#60;b onclick=&#34;x&#34;&#62;"));
}

TEST(HtmlPage, asks_for_nothing_and_lets_only_its_own_script_run) {
  const std::string page = to_html(failing_report("x"), "abc");
  for (const char* word : {"http:", "https:", "src=", "@import", "url(", "style="}) {
    EXPECT_THAT(page, Not(HasSubstr(word)));
  }
  EXPECT_THAT(page, HasSubstr("default-src 'none'; img-src data:; style-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr("unsafe")));
}

/// A report of two stored checkpoints that differ.
Report report_of_files() {
  ScenarioResult result{.name = "diff a b",
                        .file = "b",
                        .proves = "The checkpoints hold the same content.",
                        .verdict = Verdict::kFail,
                        .code = {},
                        .reason = "w: different"};
  result.first_difference = FirstDifference{.key = "w", .index = {1}, .saved = "1", .loaded = "2"};
  result.ranks = {{.compared = 2, .elements = 8, .bit_mismatches = 1}};
  result.ranks[0].not_stored = {"only"};
  restate_failure(result);
  result.failure->rank.reset();
  return {.lane = ReportLane::kFiles,
          .verdict = Verdict::kFail,
          .scenarios = {result},
          .planned = 1,
          .skipped = {},
          .mutants = {}};
}

TEST(HtmlPage, of_stored_checkpoints_has_no_word_of_a_job) {
  const std::string page = to_html(report_of_files(), "abc");
  for (const char* word :
       {"<dt>saved", "<dt>loaded", "loaded step", "uninterrupted", "id=\"properties\"",
        "id=\"pairs\"", "id=\"mutants\"", "id=\"matrix\"", "id=\"search\"", "not run", "Scenarios",
        "lives", "<dt>layouts", "<dt>world", "not stored"}) {
    EXPECT_THAT(page, Not(HasSubstr(word)));
  }
  EXPECT_THAT(page, HasSubstr("<dt>in A</dt><dd>1</dd><dt>in B</dt><dd>2</dd>"));
  EXPECT_THAT(page, HasSubstr("only in B"));
  EXPECT_THAT(page, HasSubstr("This report is about stored checkpoints: no job was run."));
  const std::string summary = to_summary(report_of_files(), "abc");
  for (const char* word : {"saved", "loaded", "rank 0", "layouts", "not run"}) {
    EXPECT_THAT(summary, Not(HasSubstr(word)));
  }
}

TEST(HtmlPage, leaves_out_facts_that_are_empty) {
  Report report = sample_report();
  report.scenarios[0].verdict = Verdict::kFail;
  report.scenarios[0].diagnosis.clear();
  report.scenarios[0].content_digest.clear();
  report.scenarios[0].layouts.clear();
  const std::string page = to_html(report, "abc");
  for (const char* name : {"diagnosis", "content digest", "layouts"}) {
    EXPECT_THAT(page, Not(HasSubstr("<dt>" + std::string(name) + "</dt>")));
  }
  EXPECT_THAT(page, HasSubstr("<dt>event hash</dt>"));
}

TEST(Annotations, stand_in_the_natural_order_of_names) {
  Report report{.lane = ReportLane::kSim,
                .verdict = Verdict::kFail,
                .scenarios = {},
                .planned = 3,
                .skipped = {},
                .mutants = {}};
  for (const char* name : {"x10", "x2", "x1"}) {
    report.scenarios.push_back({.name = name, .verdict = Verdict::kFail, .code = "HANG"});
  }
  const auto lines = annotations_of(report);
  ASSERT_GE(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("x1::"));
  EXPECT_THAT(lines[1], HasSubstr("x2::"));
  EXPECT_THAT(lines[2], HasSubstr("x10::"));
}

TEST(HtmlPage, names_verdict_commit_lane_machine_and_its_report) {
  const std::string page = to_html(sample_report(), "abc123");
  for (const char* text :
       {"<h1>Reprise: <span class=\"v pass\">", kSampleCommit, "<dt>lane</dt><dd>sim</dd>",
        "a \xc3\xa9 cpu", "SHA-256 abc123", "lane gpu: not run here", "needs a GPU"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
  EXPECT_THAT(page, Not(HasSubstr("class=\"warning\"")));
  EXPECT_THAT(page, HasSubstr("None in what was run."));
}

TEST(HtmlPage, a_pass_that_its_entries_do_not_support_is_not_shown_as_one) {
  Report report = sample_report();
  report.scenarios[0].ranks[0].bit_mismatches = 1;
  const std::string page = to_html(report, "");
  EXPECT_THAT(page, HasSubstr("<h1>Reprise: <span class=\"v unsupported\">"));
  EXPECT_THAT(page, HasSubstr("claims pass, but rank 0 has 1 element with different bits"));
  EXPECT_THAT(page, Not(HasSubstr("None in what was run.")));
}

TEST(HtmlPage, says_of_each_kind_of_evidence_that_it_was_not_run) {
  Report report = sample_report();
  run_nothing_twice(report);
  report.properties.clear();
  report.mutants.clear();
  report.matrix.reset();
  report.exhaustive.clear();
  report.coverage.reset();
  const std::string page = to_html(report, "");
  EXPECT_THAT(page, HasSubstr("Not run: doubled runs, properties, pairs of layouts, mutants, "
                              "matrix of mutants, random timelines, trainers."));
  for (const char* command :
       {"run scenarios --double", "reprise properties", "reprise exhaust", "reprise mutants",
        "mutants --matrix", "reprise explore", "--lane program"}) {
    EXPECT_THAT(page, HasSubstr(command));
  }
  report.lane = ReportLane::kFiles;
  EXPECT_THAT(to_html(report, ""),
              HasSubstr("This report is about stored checkpoints: no job was run."));
}

TEST(HtmlPage, failures_come_first_the_worst_before_the_others) {
  Report report = failing_report("x");
  report.scenarios[0].name = "the-undecided-one";
  report.scenarios[1].name = "the-failed-one";
  const std::string page = to_html(report, "");
  const auto failed = place_of(page, "the-failed-one</h3>");
  EXPECT_LT(failed, place_of(page, "the-undecided-one</h3>"));
  EXPECT_LT(failed, place_of(page, "<section id=\"properties\">"));
  EXPECT_LT(place_of(page, "<section id=\"search\">"),
            place_of(page, "<section id=\"scenarios\">"));
  const std::string block = page.substr(failed, page.find("</article>", failed) - failed);
  for (const char* text : {"<strong>x</strong>", "Where", "[2, 3]", "Placement of", "Lives of",
                           "Checkpoints of", "Trouble on each rank", "Loss of",
                           "<button type=\"button\" class=\"copy", "4 wrong keys"}) {
    EXPECT_THAT(block, HasSubstr(text));
  }
}

TEST(HtmlPage, lists_each_finding_of_a_failure_and_second_tries) {
  Report report = sample_report();
  report.scenarios[0].verdict = Verdict::kFail;
  Failure& failure = report.scenarios[0].failure.emplace();
  for (int i = 0; i < 25; ++i) {
    failure.consequences.push_back({.code = "LOST_OBJECT", .text = "key" + std::to_string(i)});
  }
  report.scenarios[0].earlier_tries = {{.code = "HANG", .reason = "a first"}};
  report.scenarios[1].earlier_tries = {{.code = "HANG", .reason = "late"}};
  const std::string page = to_html(report, "");
  for (int i = 0; i < 25; ++i) {
    EXPECT_THAT(page, HasSubstr("LOST_OBJECT: key" + std::to_string(i) + "</dd>"));
  }
  EXPECT_THAT(page, HasSubstr("<dt>earlier try</dt><dd>HANG: a first</dd>"));
  EXPECT_THAT(page, HasSubstr("Passed on the second try"));
  EXPECT_THAT(page, HasSubstr(">HANG: late<"));
}

TEST(HtmlPage, many_failures_are_all_there) {
  Report report{.lane = ReportLane::kSim, .verdict = Verdict::kFail};
  for (int i = 0; i < 100; ++i) {
    report.scenarios.push_back({.name = "name-" + std::to_string(i),
                                .file = "f.yaml",
                                .verdict = Verdict::kFail,
                                .code = "ZERO_FILL",
                                .reason = "reason-" + std::to_string(i) + "."});
  }
  const std::string page = to_html(report, "");
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(page, HasSubstr("reason-" + std::to_string(i) + "."));
  }
  EXPECT_THAT(page, HasSubstr("<h3>40 more scenarios</h3>"));
}

TEST(HtmlPage, marks_and_mutants_that_matter_come_first_and_are_flagged) {
  Report report = failing_report("x");
  report.coverage->marks = {{"often", 20}, {"seldom", 2}, {"never", 0}};
  report.mutants[0].name = "survivor";
  report.mutants[1].name = "caught-one";
  const std::string page = to_html(report, "");
  EXPECT_THAT(page, HasSubstr("3 marks: 1 rare, 1 never reached"));
  EXPECT_LT(place_of(page, "class=\"flagged\"><td>never</td>"),
            place_of(page, "class=\"flagged\"><td>seldom</td>"));
  EXPECT_LT(place_of(page, "<td>seldom</td>"), place_of(page, "<tr><td>often</td>"));
  EXPECT_LT(place_of(page, "<td>survivor</td>"), place_of(page, "<td>caught-one</td>"));
}

TEST(HtmlPage, scenarios_fold_by_file_and_files_without_a_pass_are_open) {
  Report report = sample_report();
  report.scenarios[1].file = report.scenarios[0].file;
  const std::string page = to_html(report, "");
  EXPECT_THAT(page, HasSubstr("<details data-s=\"0.2000\"><summary><span class=\"name\">"
                              "scenarios/one.yaml</span>"));
  EXPECT_THAT(page, HasSubstr("</span> pass 2</span>"));
  EXPECT_THAT(page, HasSubstr("<details open data-s=\"0.0000\"><summary><span class=\"name\">"
                              "scenarios/skipped.yaml</span>"));
}

}  // namespace
}  // namespace reprise::reports
