#include "reports/pages/pictures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "reports/pages/chart.hpp"
#include "reports/pages/grid.hpp"
#include "tests/reports/pages/failing_report.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Returns the SVG elements of figures, which must be well-formed and have text alternatives.
std::vector<pugi::xml_node> pictures_in(pugi::xml_document& document, const std::string& figures) {
  EXPECT_TRUE(document.load_string(("<all>" + figures + "</all>").c_str())) << figures;
  std::vector<pugi::xml_node> pictures;
  for (const auto& figure : document.child("all").children("figure")) {
    const auto svg = figure.child("div").child("svg");
    EXPECT_STREQ(svg.first_child().name(), "title");
    EXPECT_STRNE(svg.child_value("title"), "");
    EXPECT_STRNE(svg.child_value("desc"), "");
    EXPECT_STRNE(figure.child_value("figcaption"), "");
    pictures.push_back(svg);
  }
  return pictures;
}

/// Returns the hints of the cells of one look.
std::vector<std::string> hints_of(pugi::xml_node svg, const std::string& look) {
  std::vector<std::string> hints;
  for (const auto& box : svg.children("rect")) {
    if (box.attribute("class").value() == look) hints.emplace_back(box.child_value("title"));
  }
  return hints;
}

TEST(Ticks, are_round_and_lie_within) {
  EXPECT_THAT(ticks_between(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(ticks_between(3, 3, 5), ElementsAre(3));
  EXPECT_THAT(ticks_between(1, 4000, 4), ElementsAre(1000, 2000, 3000, 4000));
  EXPECT_THAT(ticks_between(-1, 1, 4), ElementsAre(-1, -0.5, 0, 0.5, 1));
  for (const double low : {0.0, -1e300, 1e-300, 2.3333333333333335}) {
    for (const double width : {1e-15, 1.0, 1e300}) {
      const auto ticks = ticks_between(low, low + width, 5);
      EXPECT_GE(ticks.size(), 1U);
      EXPECT_LE(ticks.size(), 11U);
    }
  }
}

TEST(Chart, a_value_that_is_not_finite_breaks_the_curve_and_is_marked) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = draw(Chart{
      .title = "t",
      .description = "d",
      .curves = {Curve{.name = "c", .look = "a", .points = {{1, 1}, {2, 2}, {3, nan}, {4, 1}}}}});
  EXPECT_THAT(svg, HasSubstr("class=\"a lost\""));
  EXPECT_THAT(svg, HasSubstr("c at 3: nan"));
  EXPECT_THAT(svg, Not(HasSubstr("cy=\"nan")));
  EXPECT_EQ(draw(Chart{.curves = {Curve{.points = {{1, nan}}}}}), "");
}

TEST(Pictures, lives_are_as_long_as_their_steps_and_faults_stand_below) {
  pugi::xml_document document;
  const auto pictures = pictures_in(document, lives_figure(failing_scenario("x", Verdict::kFail)));
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_THAT(hints_of(pictures[0], "life ran"), ElementsAre("life 0, x: ran, steps 0 to 2"));
  EXPECT_THAT(hints_of(pictures[0], "life failed"),
              ElementsAre("life 1, x: failed with x, exit code 1, steps 2 to 4"));
  const auto boxes = pictures[0].children("rect");
  EXPECT_EQ(boxes.begin()->attribute("width").as_double(), 162);
  std::vector<std::string> faults;
  for (const auto& dot : pictures[0].children("circle")) {
    faults.push_back(std::string(dot.attribute("class").value()) + ": " + dot.child_value("title"));
  }
  EXPECT_THAT(faults,
              ElementsAre("fault: x on rank 1: fired", "fault idle: x on rank 0: not armed"));
}

/// Returns the texts of one look.
std::vector<std::string> texts_of(pugi::xml_node svg, const std::string& look) {
  std::vector<std::string> texts;
  for (const auto& text : svg.children("text")) {
    if (text.attribute("class").value() == look) texts.emplace_back(text.child_value());
  }
  return texts;
}

double number_of(pugi::xml_node node, const char* attribute) {
  return node.attribute(attribute).as_double();
}

TEST(Spacetime, ranks_are_columns_and_time_runs_downwards) {
  ScenarioResult result = failing_scenario("x", Verdict::kFail);
  result.failure->timeline->events[0].name = "commit";
  pugi::xml_document document;
  const auto pictures = pictures_in(document, spacetime_figure(result));
  ASSERT_EQ(pictures.size(), 1U);
  const auto svg = pictures[0];
  EXPECT_THAT(texts_of(svg, "strong"), ElementsAre("rank 0", "rank 1", "commit"));
  const auto phase = svg.find_child_by_attribute("rect", "class", "st phase");
  const auto step = svg.find_child_by_attribute("rect", "class", "st step");
  const auto call = svg.find_child_by_attribute("rect", "class", "st store");
  EXPECT_LT(number_of(phase, "y"), number_of(step, "y"));
  EXPECT_LT(number_of(step, "y") + number_of(step, "height"),
            number_of(phase, "y") + number_of(phase, "height"));
  EXPECT_EQ(number_of(step, "y"), number_of(call, "y")) << "they begin together";
  EXPECT_GT(number_of(call, "x"), number_of(phase, "x") + 80) << "on another rank";
  for (const auto& shape : svg.children()) {
    for (const char* attribute : {"y", "y1", "cy"}) {
      EXPECT_LE(number_of(shape, attribute), number_of(svg, "height"));
    }
  }
}

TEST(Spacetime, collectives_faults_ends_and_commits_have_shapes_of_their_own) {
  pugi::xml_document document;
  const auto pictures =
      pictures_in(document, spacetime_figure(failing_scenario("x", Verdict::kFail)));
  ASSERT_EQ(pictures.size(), 1U);
  const auto svg = pictures[0];
  const auto whole = svg.find_child_by_attribute("rect", "class", "st across");
  const auto open = svg.find_child_by_attribute("rect", "class", "st across cut");
  EXPECT_GT(number_of(whole, "width"), 80);
  EXPECT_EQ(number_of(open, "width"), number_of(whole, "width")) << "to the missing rank";
  std::map<std::string, int> shapes;
  for (const auto& shape : svg.children()) {
    ++shapes[std::string(shape.name()) + " " + shape.attribute("class").value()];
  }
  EXPECT_EQ(shapes["circle came"], 3);
  EXPECT_EQ(shapes["circle missing"], 1);
  EXPECT_EQ(shapes["polyline waits"], 3);
  EXPECT_EQ(shapes["polygon fault"], 1);
  EXPECT_EQ(shapes["polyline end-of-rank"], 2) << "a cross";
  EXPECT_EQ(shapes["polyline commit"], 2) << "a double line";
  EXPECT_THAT(texts_of(svg, "fault"), testing::Contains("missing"));
}

TEST(Spacetime, long_waits_are_short_and_labels_of_a_rank_do_not_overlap) {
  ScenarioResult result = failing_scenario("x", Verdict::kFail);
  auto& events = result.failure->timeline->events;
  for (std::uint64_t i = 0; i < 50; ++i) {
    events.push_back(
        {.kind = TimelineKind::kStore, .name = "write", .ranks = {{0, 9000}}, .end_ns = 9001 + i});
  }
  pugi::xml_document document;
  const auto pictures = pictures_in(document, spacetime_figure(result));
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_LT(number_of(pictures[0], "height"), 60 * 15);
  std::map<double, std::set<double>> labels;
  std::size_t written = 0;
  for (const auto& text : pictures[0].children("text")) {
    if (number_of(text, "x") < 80) continue;  // times
    labels[number_of(text, "x")].insert(number_of(text, "y"));
    ++written;
  }
  std::size_t different = 0;
  for (const auto& [x, heights] : labels) {
    different += heights.size();
    double before = -100;
    for (const double y : heights) {
      EXPECT_GE(y - before, 8);
      before = y;
    }
  }
  EXPECT_EQ(different, written);
}

TEST(Spacetime, says_in_words_what_matters_and_what_is_left_out) {
  ScenarioResult result = failing_scenario("x", Verdict::kFail);
  result.failure->timeline->events[7].name = "barrier";
  result.failure->timeline->events[7].detail = "{0 1}";
  pugi::xml_document document;
  const std::string figure = spacetime_figure(result);
  const auto pictures = pictures_in(document, figure);
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_STREQ(pictures[0].child_value("desc"),
               "at 8 us rank 0: x; at 9 us rank 1: x x (fault); at 9 us rank 1: x x; at 60.000 s "
               "rank 0: barrier {0 1}, without rank 1");
  EXPECT_THAT(figure, HasSubstr("5 earlier events left out. 1 more rank left out."));
}

TEST(Spacetime, of_a_damaged_report_is_drawn_and_of_none_is_not) {
  ScenarioResult result = failing_scenario("x", Verdict::kFail);
  result.failure->timeline->events = {{.kind = TimelineKind::kCollective,
                                       .ranks = {{77, UINT64_MAX}},
                                       .end_ns = 0,
                                       .missing = {-1}}};
  pugi::xml_document document;
  EXPECT_EQ(pictures_in(document, spacetime_figure(result)).size(), 1U);
  result.failure->timeline->events.clear();
  EXPECT_EQ(spacetime_figure(result), "");
  result.failure->timeline.reset();
  EXPECT_EQ(spacetime_figure(result), "");
  EXPECT_EQ(spacetime_figure({}), "");
}

TEST(Pictures, lives_of_a_damaged_report_are_drawn_too) {
  ScenarioResult result{.name = "x"};
  result.incarnations = {{.first_step = INT64_MIN, .last_step = INT64_MAX},
                         {.first_step = INT64_MAX, .last_step = INT64_MIN}};
  pugi::xml_document document;
  EXPECT_EQ(pictures_in(document, lives_figure(result)).size(), 1U);
  EXPECT_EQ(lives_figure({}), "");
}

TEST(Pictures, ranks_show_each_kind_of_failure_and_omit_excused_ones) {
  pugi::xml_document document;
  const auto pictures = pictures_in(document, ranks_figure(failing_scenario("x", Verdict::kFail)));
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_THAT(hints_of(pictures[0], "heat"),
              ElementsAre("rank 0, other bits: 0", "rank 0, not stored: 0", "rank 0, not asked: 0",
                          "rank 0, shape: 0", "rank 0, dtype: 0", "rank 1, other bits: 7",
                          "rank 1, not stored: 1", "rank 1, not asked: 1", "rank 1, shape: 1",
                          "rank 1, dtype: 1"));
  EXPECT_EQ(ranks_figure(sample_scenario("good")), "");
}

TEST(Pictures, wrong_keys_are_drawn_per_rank_with_the_number_of_their_code) {
  pugi::xml_document document;
  const std::string figure = wrong_keys_figure(failing_scenario("x", Verdict::kFail));
  const auto pictures = pictures_in(document, figure);
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_THAT(hints_of(pictures[0], "heat"),
              ElementsAre("x: x on ranks 0, 1", "x: x on ranks 0, 1; x: B on rank 1"));
  EXPECT_THAT(figure, HasSubstr(">1,2<"));
  EXPECT_THAT(figure, HasSubstr("1 is x, the verdict. 2 is B. 3 more findings are left out."));
  EXPECT_EQ(wrong_keys_figure(sample_scenario("good")), "");
  ScenarioResult many = failing_scenario("x", Verdict::kFail);
  for (int rank = 2; rank < 40; ++rank) many.failure->wrong_keys->keys[1].ranks.push_back(rank);
  EXPECT_THAT(wrong_keys_figure(many), HasSubstr("8 more ranks are left out."));
}

TEST(Pictures, ranks_with_equal_trouble_share_a_row) {
  ScenarioResult result{.name = "x"};
  for (int rank = 0; rank < 200; ++rank) {
    result.ranks.push_back({.rank = rank, .bit_mismatches = rank < 3 ? 5U : rank % 2U});
  }
  const std::string figure = ranks_figure(result);
  EXPECT_THAT(figure, HasSubstr(">ranks 0-2<"));
  EXPECT_THAT(figure, HasSubstr("134 more rows are left out"));
}

TEST(Pictures, the_loss_is_drawn_only_where_it_left_the_course) {
  pugi::xml_document document;
  const ScenarioResult failing = failing_scenario("x", Verdict::kFail);
  EXPECT_EQ(pictures_in(document, loss_figure(failing)).size(), 1U);
  EXPECT_EQ(loss_sentence(failing),
            "The loss of 2 of 3 steps differs from the uninterrupted run, first at step 2: 2.5 "
            "instead of 2.25.");
  EXPECT_EQ(loss_figure(sample_scenario("good")), "");
  EXPECT_EQ(loss_sentence(sample_scenario("good")),
            "The loss of 1 step equals that of the uninterrupted run.");
  EXPECT_EQ(loss_sentence({}), "The loss was not compared with the uninterrupted run at any step.");
}

TEST(Pictures, the_matrix_shows_families_and_codes) {
  Matrix matrix{.mutants = 2,
                .scenarios = {"cache/a", "cache/b", "save/c"},
                .rows = {{.mutant = "m", .cells = "Cpn", .caught = {{"cache/a", {"ZERO_FILL"}}}},
                         {.mutant = "n", .cells = ".pC", .caught = {{"save/c", {"WRONG_OWNER"}}}}}};
  pugi::xml_document document;
  const auto pictures = pictures_in(document, matrix_figures(matrix));
  ASSERT_EQ(pictures.size(), 2U);
  EXPECT_THAT(hints_of(pictures[0], "caught"),
              ElementsAre("m in cache: 1 of 2 caught it", "n in save: 1 of 1 caught it"));
  EXPECT_THAT(hints_of(pictures[0], "called"), ElementsAre("n in cache: 0 of 1 caught it"));
  EXPECT_THAT(hints_of(pictures[0], "nothing"), ElementsAre("m in save: not called"));
  EXPECT_THAT(hints_of(pictures[1], "caught"), ElementsAre("m with ZERO_FILL: 1 of 1 caught it",
                                                           "n with WRONG_OWNER: 1 of 1 caught it"));
  matrix.rows[0].cells = "C";  // a damaged report
  EXPECT_EQ(pictures_in(document, matrix_figures(matrix)).size(), 2U);
  EXPECT_EQ(matrix_figures({}), "");
}

TEST(Pictures, the_search_has_a_curve_of_tuples_and_one_of_marks) {
  pugi::xml_document document;
  EXPECT_EQ(pictures_in(document, search_figures(*sample_report().coverage)).size(), 2U);
  EXPECT_EQ(search_figures({}), "");
}

}  // namespace
}  // namespace reprise::reports
