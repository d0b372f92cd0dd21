#include "tests/reports/pages/drawn_page.hpp"
#include "tests/reports/pages/failing_report.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Returns the tags of a page with the names of their attributes, one per line. Text between tags,
/// quoted values, the style sheet, the script and the documents of the page are left out.
std::string tags_of(const std::string& html) {
  std::string tags;
  bool inside = false;
  bool quoted = false;
  for (std::size_t i = 0; i < html.size(); ++i) {
    if (html.compare(i, 7, "<style>") == 0) i = html.find("</style>", i);
    if (html.compare(i, 7, "<script") == 0) i = html.find("</script>", i);
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

class HtmlPage : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_browser()) GTEST_SKIP() << "no chromium: apt-get install chromium";
  }
};

TEST(PageSource, text_of_a_report_never_becomes_a_part_of_the_page) {
  const std::string plain = to_html(failing_report(std::string(100, 'x')), "abc");
  const std::string awkward = to_html(failing_report(kAwkward), "abc");
  EXPECT_TRUE(tags_of(awkward) == tags_of(plain)) << "too long to be printed";
  EXPECT_GT(tags_of(plain).size(), 800U);
  EXPECT_THAT(awkward, Not(HasSubstr("<b onclick")));
  EXPECT_THAT(awkward, HasSubstr("&#60;b onclick=&#34;x&#34;&#62;")) << "in the tables";
  EXPECT_THAT(awkward, HasSubstr("\\u003cb onclick=\\\"x\\\">")) << "in the documents";
  EXPECT_THAT(awkward, HasSubstr("\\u003c/script>"));
}

TEST_F(HtmlPage, draws_text_of_a_report_as_text) {
  const std::string plain = drawn_html(to_html(failing_report(std::string(100, 'x')), "abc"));
  const std::string awkward = drawn_html(to_html(failing_report(kAwkward), "abc"));
  EXPECT_TRUE(tags_of(awkward) == tags_of(plain)) << "too long to be printed";
  EXPECT_GT(tags_of(plain).size(), 5000U);
  EXPECT_THAT(awkward, HasSubstr("<p class=\"reason\">&lt;b onclick=\"x\"&gt;"));
  EXPECT_THAT(awkward, HasSubstr("\\x1b\\xff")) << "what a reader can't see is written out";
}

TEST(PageSource, asks_for_nothing_and_lets_only_its_own_script_run) {
  const std::string page = to_html(failing_report("x"), "abc");
  for (const char* word :
       {"http:", "https:", "src=", "@import", "style=", "innerHTML", "outerHTML", "insertAdjacent",
        "document.write", "DOMParser", "eval(", "Function(", "fetch(", "XMLHttp", "import("}) {
    EXPECT_THAT(page, Not(HasSubstr(word)));
  }
  EXPECT_THAT(std::regex_replace(page, std::regex("url\\(#hatch\\)"), ""), Not(HasSubstr("url(")));
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

TEST_F(HtmlPage, of_stored_checkpoints_has_no_word_of_a_job) {
  const DrawnPage page(report_of_files());
  for (const char* word :
       {"<dt>saved", "<dt>loaded", "loaded step", "reference run", "id=\"properties\"",
        "id=\"pairs\"", "id=\"mutants\"", "id=\"matrix\"", "id=\"search\"", "not run", "Scenarios",
        ">scenario", "lives", "layouts", "<dt>world", "not stored"}) {
    EXPECT_THAT(page.text(), Not(HasSubstr(word)));
  }
  EXPECT_THAT(page.text(), HasSubstr("<dt>in A</dt><dd>1</dd><dt>in B</dt><dd>2</dd>"));
  EXPECT_THAT(page.texts("//div[@class='values']/div"), ElementsAre("in A1", "in B2"));
  EXPECT_THAT(page.text(), HasSubstr("only in B"));
  EXPECT_THAT(page.text(), HasSubstr("This report is about stored checkpoints: no job was run."));
  const std::string summary = to_summary(report_of_files(), "abc");
  for (const char* word : {"saved", "loaded", "rank 0", "layouts", "not run"}) {
    EXPECT_THAT(summary, Not(HasSubstr(word)));
  }
}

TEST_F(HtmlPage, leaves_out_facts_that_are_empty) {
  Report report = sample_report();
  report.scenarios[0].verdict = Verdict::kFail;
  report.scenarios[0].diagnosis.clear();
  report.scenarios[0].content_digest.clear();
  report.scenarios[0].layouts.clear();
  const DrawnPage page(report);
  for (const char* name : {"diagnosis", "content digest", "layouts"}) {
    EXPECT_THAT(page.text(), Not(HasSubstr("<dt>" + std::string(name) + "</dt>")));
  }
  EXPECT_THAT(page.text(), HasSubstr("<dt>event hash</dt>"));
}

TEST_F(HtmlPage, leaves_out_sections_that_are_empty) {
  const DrawnPage page(report_with(sample_scenario("one")));
  std::vector<std::string> ids;
  for (const auto& section : page.all("//section")) {
    ids.emplace_back(section.attribute("id").value());
  }
  EXPECT_THAT(ids, ElementsAre("problems", "evidence", "scenarios")) << "it is not planned so";
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

TEST_F(HtmlPage, names_verdict_commit_lane_machine_and_its_report) {
  const DrawnPage page(sample_report());
  EXPECT_THAT(page.texts("//header/h1"), ElementsAre("Reprise: \xe2\x9c\x93 pass"));
  for (const char* text :
       {kSampleCommit, "<dt>lane</dt><dd>sim</dd>", "a \xc3\xa9 cpu", "SHA-256 abc"}) {
    EXPECT_THAT(page.texts("//footer")[0] + page.text(), HasSubstr(text));
  }
  EXPECT_THAT(page.text(), HasSubstr("lane gpu: not run here"));
  EXPECT_THAT(page.text(), HasSubstr("needs a GPU"));
  EXPECT_THAT(page.text(), Not(HasSubstr("class=\"warning\"")));
  EXPECT_THAT(page.text(), Not(HasSubstr("<article")));
}

TEST_F(HtmlPage, a_pass_shows_its_numbers) {
  const DrawnPage page(sample_report());
  EXPECT_THAT(page.texts("//header/div[@class='tiles']/div"),
              ElementsAre("3 of 3scenarios passed", "400elements compared", "0of them differ",
                          "3ran twice", "2 of 2mutants caught", "30random cases",
                          "61pairs of layouts passed", "100random timelines"));
}

TEST_F(HtmlPage, a_pass_without_support_is_not_shown_as_one) {
  Report report = sample_report();
  report.scenarios[0].ranks[0].bit_mismatches = 1;
  const DrawnPage page(report);
  EXPECT_THAT(page.text(), HasSubstr("<h1>Reprise: <span class=\"v unsupported\">"));
  EXPECT_THAT(page.texts("//article"),
              ElementsAre(HasSubstr("claims pass, but rank 0 has 1 element with different bits")));
}

TEST_F(HtmlPage, says_of_each_kind_of_evidence_that_it_was_not_run) {
  Report report = sample_report();
  run_nothing_twice(report);
  report.properties.clear();
  report.mutants.clear();
  report.matrix.reset();
  report.exhaustive.clear();
  report.coverage.reset();
  const DrawnPage page(report);
  EXPECT_THAT(page.text(),
              HasSubstr("Not run: doubled runs, properties, pairs of layouts, mutants, "
                        "matrix of mutants, random timelines, trainers"));
  for (const char* command :
       {"run scenarios --double", "reprise search properties", "reprise search exhaust",
        "reprise mutants", "mutants --matrix", "reprise search explore", "--lane program"}) {
    EXPECT_THAT(page.text(), HasSubstr(command));
    EXPECT_THAT(to_html(report, ""), HasSubstr(command)) << "without a script, too";
  }
}

TEST_F(HtmlPage, failures_come_first_the_worst_before_the_others) {
  Report report = failing_report("x");
  report.scenarios[0].name = "the-undecided-one";
  report.scenarios[1].name = "the-failed-one";
  const DrawnPage page(report);
  const auto titles = page.texts("//article/h3");
  ASSERT_EQ(titles.size(), 2U) << "the mutant is told at the top, and is no problem of its own";
  EXPECT_EQ(titles[0], "\xe2\x9c\x97 fail x x[2, 3]");
  EXPECT_THAT(page.texts("//article[1]")[0], HasSubstr("the-failed-one"));
  const auto worst = page.texts("//header/div[@class='worst']/a");
  ASSERT_EQ(worst.size(), 2U);
  EXPECT_EQ(worst[0], "\xe2\x9c\x97 fail xx[2, 3]xthe-failed-one");
  EXPECT_THAT(page.texts("//header/p/strong")[0], HasSubstr("problems, "));
  EXPECT_LT(place_of(page.text(), "the-failed-one"), place_of(page.text(), "the-undecided-one"));
  EXPECT_LT(place_of(page.text(), "<section id=\"search\""),
            place_of(page.text(), "<section id=\"scenarios\""));
  for (const char* text :
       {"Which rank holds what of", "The lives of the job, step by step", "2 checkpoints",
        "Training loss", "The end of life 1", "wrong key by rank",
        "<button type=\"button\" class=\"copy", "4 keys missing"}) {
    EXPECT_THAT(page.text(), HasSubstr(text));
  }
}

TEST_F(HtmlPage, has_one_card_for_each_cause) {
  Report report{.lane = ReportLane::kSim, .verdict = Verdict::kFail, .planned = 100};
  for (int i = 0; i < 100; ++i) {
    report.scenarios.push_back({.name = "name-" + std::to_string(i),
                                .file = "f.yaml",
                                .verdict = Verdict::kFail,
                                .code = i < 90 ? "ZERO_FILL" : "HANG",
                                .reason = "reason-" + std::to_string(i) + ".",
                                .replay = "reprise run " + std::to_string(i)});
  }
  const DrawnPage page(report);
  EXPECT_EQ(page.all("//article").size(), 2U);
  EXPECT_THAT(page.texts("//header/p/strong"), ElementsAre("100 problems, 2 causes"));
  EXPECT_THAT(page.texts("//header/div[@class='worst']/a/div[@class='quiet']"),
              ElementsAre("name-0, and 89 more like it", "name-90, and 9 more like it"));
  EXPECT_THAT(page.text(), HasSubstr("ZERO_FILL: Content was replaced by zeros."))
      << "what the code means";
  EXPECT_EQ(page.all("//article[1]//details[summary='89 more like it']//tbody/tr").size(), 89U);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(page.text(), HasSubstr("reason-" + std::to_string(i) + "."));
  }
}

TEST(PageSource, has_the_tables_without_a_script) {
  const std::string page = to_html(failing_report("x"), "abc");
  const auto main = page.substr(page.find("<main>"), page.find("</main>") - page.find("<main>"));
  EXPECT_THAT(main, HasSubstr("fail</span></td><td>x</td><td>x[2, 3]</td><td>x</td><td>x</td>"));
  EXPECT_THAT(main, HasSubstr("<td>scenarios</td><td>3 scenarios: 1 fail, 1 inconclusive"));
  EXPECT_LT(page.find("<h1>Reprise: <span class=\"v fail\">"), page.find("<main>"));
  EXPECT_THAT(page.substr(page.find("<footer>")), HasSubstr("SHA-256 abc"));
}

TEST_F(HtmlPage, lists_each_finding_of_a_failure_and_second_tries) {
  Report report = sample_report();
  report.scenarios[0].verdict = Verdict::kFail;
  Failure& failure = report.scenarios[0].failure.emplace();
  for (int i = 0; i < 25; ++i) {
    failure.consequences.push_back({.code = "LOST_OBJECT", .text = "key" + std::to_string(i)});
  }
  report.scenarios[0].earlier_tries = {{.code = "HANG", .reason = "a first"}};
  report.scenarios[1].earlier_tries = {{.code = "HANG", .reason = "late"}};
  const DrawnPage page(report);
  for (int i = 0; i < 25; ++i) {
    EXPECT_THAT(page.text(), HasSubstr("LOST_OBJECT: key" + std::to_string(i) + "</dd>"));
  }
  EXPECT_THAT(page.text(), HasSubstr("<dt>earlier try</dt><dd>HANG: a first</dd>"));
  EXPECT_THAT(page.text(), HasSubstr("Passed on the second try"));
  EXPECT_THAT(page.text(), HasSubstr(">HANG: late<"));
}

TEST_F(HtmlPage, marks_and_mutants_that_matter_come_first) {
  Report report = failing_report("x");
  report.coverage->marks = {{"often", 20}, {"seldom", 2}, {"never", 0}};
  report.mutants[0].name = "caught-one";
  report.mutants[1].name = "survivor";
  std::swap(report.mutants[0].caught, report.mutants[1].caught);
  const DrawnPage page(report);
  EXPECT_THAT(page.text(), HasSubstr("3 marks: 1 rare, 1 never reached"));
  const std::string rows = "//section[@id='search']//details//tbody/tr";
  EXPECT_THAT(page.texts(rows), ElementsAre("never0never reached", "seldom2rare", "often20"));
  EXPECT_EQ(page.all(rows + "[@class='flagged']").size(), 2U);
  EXPECT_THAT(page.texts("//section[@id='mutants']//tbody/tr/td[1]"),
              ElementsAre("survivor", "caught-one"));
  EXPECT_EQ(page.all("//section[@id='mutants']//tr[@class='flagged']").size(), 1U);
}

TEST_F(HtmlPage, scenarios_fold_by_file_and_files_without_a_pass_are_open) {
  Report report = sample_report();
  report.scenarios[1].file = report.scenarios[0].file;
  const DrawnPage page(report);
  EXPECT_THAT(page.texts("//div[@id='files']/details[not(@open)][@data-s='0.2000']/summary"),
              Contains("scenarios/one.yaml \xe2\x9c\x93 pass 2 0.20 s"));
  EXPECT_THAT(page.texts("//div[@id='files']/details[@open][@data-s='0.0000']/summary"),
              Contains(HasSubstr("scenarios/skipped.yaml")));
}

}  // namespace
}  // namespace reprise::reports
