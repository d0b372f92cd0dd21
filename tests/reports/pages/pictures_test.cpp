// Tests the pictures and tables of a card, as the browser draws them.

#include <limits>
#include <set>

#include "tests/reports/pages/drawn_page.hpp"
#include "tests/reports/pages/failing_report.hpp"

namespace reprise::reports {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Pictures : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_browser()) GTEST_SKIP() << "no chromium: apt-get install chromium";
  }
};

std::string svg_titled(const std::string& title) {
  return "//figure[starts-with(figcaption, '" + title + "')]//svg";
}

/// Returns a failure with this placement alone.
ScenarioResult placed(const TensorPlacement& placement) {
  ScenarioResult result{.name = "x", .verdict = Verdict::kFail, .code = "WRONG_OWNER"};
  result.failure = Failure{.cause = "c", .life = 1, .rank = placement.rank, .placement = placement};
  return result;
}

const std::string kSaved = svg_titled("Saved by life 0 (tp2)");
const std::string kLoaded = svg_titled("Loaded by life 1 (tp2)");

TEST_F(Pictures, placement_has_the_save_beside_the_load) {
  const DrawnPage page(report_with(placed(sample_placement())));
  EXPECT_THAT(page.texts("//h4"), ElementsAre("Which rank holds what of w [6, 4]"));
  EXPECT_THAT(page.texts(kSaved + "/rect[starts-with(@class, 'part')]/title"),
              ElementsAre("ranks 0, 2: [0:3, 0:4]", "ranks 1, 3: [3:6, 0:4]"));
  EXPECT_THAT(page.texts(kLoaded + "/rect[starts-with(@class, 'part')]/title"),
              ElementsAre("rank 0: [0:6, 0:1]", "rank 1: [0:6, 1:2]", "rank 2: [0:6, 2:3]"));
  EXPECT_THAT(page.texts(kSaved + "/text[@class='middle']"),
              ElementsAre("ranks 0, 2", "ranks 1, 3"));
  EXPECT_THAT(page.texts(kLoaded + "/text[@class='middle quiet']"),
              ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_THAT(page.texts(kSaved + "/rect[@class='wrong']/title"),
              ElementsAre("ranks 1, 3: [3:6, 0:4]"));
  EXPECT_THAT(page.texts(kLoaded + "/rect[@class='wrong']/title"),
              ElementsAre("rank 1: [0:6, 1:2]"));
  const auto outline = page.one(kLoaded + "/rect[@class='wrong']");
  double x = 0;
  double y = 0;
  const auto cross = page.one(kLoaded + "/path[@class='mark']");
  ASSERT_EQ(std::sscanf(cross.attribute("d").value(), "M%lf %lf", &x, &y), 2);
  EXPECT_GT(x + 6, number_of(outline, "x"));
  EXPECT_LT(x + 6, number_of(outline, "x") + number_of(outline, "width"));
  EXPECT_GT(y, number_of(outline, "y") + number_of(outline, "height") / 2) << "row 4 of 6";
  EXPECT_THAT(page.text(), HasSubstr("The cross is the wrong element [4, 1]"));
  EXPECT_THAT(page.text(), HasSubstr("1 more part."));
  for (const auto& svg : page.all("//svg")) {
    EXPECT_STRNE(svg.child_value("title"), "");
    EXPECT_STRNE(svg.child_value("desc"), "");
  }
}

TEST_F(Pictures, placement_hatches_what_no_rank_holds) {
  TensorPlacement placement = sample_placement();
  placement.loaded->boxes_left_out = 0;
  placement.saved->boxes.push_back({.offset = {2, 0}, .extent = {2, 1}, .ranks = {5}});
  const DrawnPage page(report_with(placed(placement)));
  EXPECT_THAT(page.texts(kLoaded + "/rect[@class='missing']/title"),
              Contains("no rank holds this"));
  EXPECT_THAT(page.texts(kLoaded + "/text[contains(@class, 'bad')]"), Contains("missing"));
  const auto hatched = page.one(kLoaded + "/rect[@class='missing']");
  const auto last = page.one(kLoaded + "/rect[@class='part'][title='rank 2: [0:6, 2:3]']");
  EXPECT_NEAR(number_of(hatched, "x"), number_of(last, "x") + number_of(last, "width"), 0.2);
  EXPECT_THAT(page.all(kSaved + "/rect[@class='missing']"), IsEmpty());
  EXPECT_THAT(page.texts(kSaved + "/rect[@class='twice']/title"),
              Contains("several boxes hold this"));
  EXPECT_THAT(page.text(), HasSubstr("No rank holds what is hatched in red."));
  placement.loaded->boxes_left_out = 1;
  EXPECT_THAT(DrawnPage(report_with(placed(placement))).all(kLoaded + "/rect[@class='missing']"),
              IsEmpty())
      << "a part is left out";
}

TEST_F(Pictures, placement_without_an_element_outlines_the_part_of_the_rank) {
  TensorPlacement placement = sample_placement();
  placement.index.clear();
  const DrawnPage page(report_with(placed(placement)));
  EXPECT_THAT(page.all(kSaved + "/rect[@class='wrong']"), IsEmpty()) << "the failure is in life 1";
  EXPECT_THAT(page.texts(kLoaded + "/rect[@class='wrong']/title"),
              ElementsAre("rank 1: [0:6, 1:2]"));
  EXPECT_THAT(page.all(kLoaded + "/path"), IsEmpty());
  EXPECT_THAT(page.text(), HasSubstr("The red outline is what rank 1 holds."));
}

TEST_F(Pictures, placement_boxes_have_place_and_size_of_their_part) {
  TensorPlacement placement{.key = "w", .shape = {100, 10}, .saved = TensorCut{.layout = "tp2"}};
  placement.saved->boxes = {{.offset = {0, 0}, .extent = {75, 10}, .ranks = {0}},
                            {.offset = {75, 0}, .extent = {25, 5}, .ranks = {2}},
                            {.offset = {75, 5}, .extent = {25, 5}, .ranks = {4}}};
  const DrawnPage page(report_with(placed(placement)));
  const auto drawn = page.all(kSaved + "/rect[@class='part']");
  ASSERT_EQ(drawn.size(), 3U);
  EXPECT_NEAR(number_of(drawn[0], "height"), 3 * number_of(drawn[1], "height"), 0.2);
  EXPECT_NEAR(number_of(drawn[0], "width"),
              number_of(drawn[1], "width") + number_of(drawn[2], "width"), 0.2);
  EXPECT_NEAR(number_of(drawn[2], "x"), number_of(drawn[1], "x") + number_of(drawn[1], "width"),
              0.2);
  EXPECT_NEAR(number_of(drawn[1], "y"), number_of(drawn[0], "y") + number_of(drawn[0], "height"),
              0.2);
}

TEST_F(Pictures, placement_of_many_parts_has_room_for_each_label) {
  TensorPlacement placement{.key = "w", .shape = {640}, .saved = TensorCut{.layout = "tp2"}};
  for (std::int32_t rank = 0; rank < 64; ++rank) {
    const std::int64_t length = rank == 63 ? 577 : 1;
    placement.saved->boxes.push_back({.offset = {rank}, .extent = {length}, .ranks = {rank}});
  }
  const DrawnPage page(report_with(placed(placement)));
  EXPECT_EQ(page.all(kSaved + "/text[@class='middle']").size(), 64U);
  EXPECT_THAT(page.all(kSaved + "/text[@class='middle quiet']"), IsEmpty()) << "it goes down";
  for (const auto& box : page.all(kSaved + "/rect")) EXPECT_GE(number_of(box, "height"), 20);
}

TEST_F(Pictures, placement_of_three_dimensions_is_flattened) {
  TensorPlacement placement{.key = "experts", .shape = {4, 6, 2}, .index = {2, 4, 1}};
  placement.loaded = TensorCut{.life = 1, .layout = "tp2"};
  placement.loaded->boxes = {{.offset = {0, 0, 0}, .extent = {2, 6, 2}, .ranks = {0}},
                             {.offset = {2, 0, 0}, .extent = {2, 3, 2}, .ranks = {1}},
                             {.offset = {2, 3, 0}, .extent = {2, 3, 2}, .ranks = {2}}};
  const DrawnPage page(report_with(placed(placement)));
  EXPECT_THAT(page.text(), HasSubstr("Dimensions 0 to 1 are flattened and go down"));
  // Rows 0..12 are of rank 0; ranks 1 and 2 take turns, because their rows are cut.
  EXPECT_THAT(page.texts(kLoaded + "/text[@class='end quiet']"),
              ElementsAre("0", "12", "15", "18", "21", "24"));
  EXPECT_EQ(page.all(kLoaded + "/rect[starts-with(@class, 'part')]").size(), 5U);
  EXPECT_THAT(page.texts(kLoaded + "/rect[@class='wrong']/title"),
              ElementsAre("rank 2: [2:4, 3:6, 0:2]", "rank 2: [2:4, 3:6, 0:2]"));
}

TEST_F(Pictures, placement_of_one_element_and_of_damaged_reports) {
  TensorPlacement scalar{.key = "step", .saved = TensorCut{.layout = "tp2"}};
  scalar.saved->boxes = {{.ranks = {0, 1}}};
  EXPECT_THAT(DrawnPage(report_with(placed(scalar))).texts(kSaved + "/rect/title"),
              ElementsAre("ranks 0-1: []"));
  TensorPlacement damaged = sample_placement();
  constexpr std::int64_t kMost = INT64_MAX;
  damaged.saved->boxes = {{.offset = {kMost, 0}, .extent = {1, 1}, .ranks = {0}},
                          {.offset = {0, 0}, .extent = {kMost, kMost}, .ranks = {}},
                          {.offset = {-1, 0}, .extent = {3, 3}, .ranks = {1}},
                          {.offset = {0}, .extent = {3}, .ranks = {1}}};
  damaged.index = {kMost, -kMost};
  const DrawnPage page(report_with(placed(damaged)));
  EXPECT_THAT(page.all(kSaved), IsEmpty()) << "no box of the save lies in the tensor";
  EXPECT_THAT(page.all(kLoaded + "/path"), IsEmpty());
  damaged.shape = {kMost, kMost};
  EXPECT_THAT(DrawnPage(report_with(placed(damaged))).all("//svg"), IsEmpty());
}

TEST_F(Pictures, placement_says_that_stretches_are_cut) {
  TensorPlacement placement{.key = "w", .shape = {1000, 2, 2}, .saved = TensorCut{.layout = "tp2"}};
  placement.saved->boxes = {{.offset = {0, 0, 0}, .extent = {1000, 1, 2}, .ranks = {0}}};
  const DrawnPage page(report_with(placed(placement)));
  EXPECT_EQ(page.all(kSaved + "/rect[@class='part']").size(), 512U);
  EXPECT_THAT(page.text(), HasSubstr("Of each part at most 512 stretches are drawn."));
  EXPECT_THAT(page.text(), Not(HasSubstr("more part.")));
}

TEST_F(Pictures, lives_show_steps_checkpoints_faults_and_the_wrong_step) {
  ScenarioResult result = failing_scenario("x", Verdict::kFail);
  result.generations = {{.step = 2, .life = 0, .state = "kept", .loaded_by = {1, 2}},
                        {.step = 4, .life = 1, .state = "damaged", .skipped_by = {2}},
                        {.step = 3, .life = 1, .state = "<b>"}};
  const DrawnPage page(report_with(result));
  const std::string svg = svg_titled("The lives of the job, step by step");
  EXPECT_THAT(page.texts(svg + "/rect/title"),
              ElementsAre("life 0, x: ran, steps 0 to 2",
                          "life 1, x: failed with x, exit code 1, steps 2 to 4"));
  EXPECT_EQ(number_of(page.one(svg + "/rect[@class='bar']"), "width"), 168) << "2 of 4 steps";
  EXPECT_EQ(page.all(svg + "/rect[@class='bar cut']").size(), 1U);
  EXPECT_EQ(page.all(svg + "/*[@class='mark']").size(), 2U) << "a line and a cross";
  EXPECT_THAT(page.text(), HasSubstr("The red cross is where it went wrong: life 1, step 3."));
  EXPECT_THAT(page.text(), HasSubstr("Checkpoints: \xe2\x97\x86 kept, \xe2\x9c\x97 damaged."));
  EXPECT_THAT(page.text(),
              HasSubstr("Planned faults: x on rank 1: fired; x on rank 0: not armed."));
  EXPECT_THAT(page.texts("//details[contains(summary, '3 checkpoints')]//tbody/tr"),
              ElementsAre("20kept1, 2", "41damaged2", "31<b>"));
}

TEST_F(Pictures, lives_of_a_damaged_report_are_drawn_too) {
  ScenarioResult result{.name = "x", .verdict = Verdict::kFail, .code = "x"};
  result.lives = {{.first_step = INT64_MIN, .last_step = INT64_MAX},
                  {.first_step = INT64_MAX, .last_step = INT64_MIN}};
  result.generations = {{.step = INT64_MIN, .life = SIZE_MAX, .state = "<b>"}};
  EXPECT_EQ(DrawnPage(report_with(result)).all("//svg").size(), 1U);
}

TEST_F(Pictures, the_loss_is_drawn_only_where_it_left_the_course) {
  const DrawnPage page(report_with(failing_scenario("x", Verdict::kFail)));
  const std::string svg = svg_titled("Training loss beside the reference run");
  EXPECT_THAT(page.texts(svg + "/text[@class='middle bad']"),
              ElementsAre("nan", "wrong from step 2"));
  EXPECT_EQ(page.all(svg + "/*[@class='mark']").size(), 2U) << "a line and a cross";
  EXPECT_STREQ(page.one(svg + "/path[@class='own']").attribute("d").value(), "M80 150L215 30")
      << "the step that is not finite is no part of the curve";
  EXPECT_THAT(
      page.texts(svg + "/desc"),
      ElementsAre("The loss of 2 steps differs from the reference run, first at step 2: 2.5 "
                  "instead of 2.25."));
  EXPECT_THAT(page.texts("//tr[td='\xe2\x9c\x97 first wrong step']"),
              ElementsAre("22.52.25\xe2\x9c\x97 first wrong step"));
  ScenarioResult good = sample_scenario("good");
  good.verdict = Verdict::kFail;
  EXPECT_THAT(DrawnPage(report_with(good)).all(svg), IsEmpty());
}

const std::string kSpacetime = svg_titled("The end of life 1");

TEST_F(Pictures, spacetime_has_ranks_as_columns_and_time_runs_down) {
  const DrawnPage page(report_with(failing_scenario("x", Verdict::kFail)));
  const std::string svg = kSpacetime;
  EXPECT_THAT(page.texts(svg + "/text[starts-with(@class, 'middle')][contains(., 'rank')]"),
              ElementsAre("rank 0", "\xe2\x9c\x97 rank 1"));
  const auto phase = page.one(svg + "/rect[@class='bar phase']");
  const auto step = page.one(svg + "/rect[@class='bar step']");
  const auto call = page.one(svg + "/rect[@class='bar store']");
  EXPECT_LT(number_of(phase, "y"), number_of(step, "y"));
  EXPECT_LT(number_of(step, "y") + number_of(step, "height"),
            number_of(phase, "y") + number_of(phase, "height"));
  EXPECT_LT(number_of(step, "y"), number_of(call, "y")) << "each has a row of its own";
  EXPECT_GT(number_of(call, "x"), number_of(phase, "x") + 60) << "on another rank";
  const auto whole = page.one(svg + "/rect[@class='bar collective']");
  const auto open = page.one(svg + "/rect[@class='bar collective cut']");
  EXPECT_EQ(number_of(open, "width"), number_of(whole, "width")) << "to the missing rank";
  EXPECT_EQ(page.all(svg + "/circle[not(@class)]").size(), 3U);
  EXPECT_EQ(page.all(svg + "/circle[@class='missed']").size(), 1U);
  EXPECT_EQ(page.all(svg + "/path[@class='mark']").size(), 2U) << "the fault, the end of the rank";
  EXPECT_THAT(page.texts(svg + "/text[@class='bad']"),
              ElementsAre("\xe2\x9c\x97 x x", "\xe2\x9c\x97 x x", "\xe2\x9c\x97 x without rank 1"));
  EXPECT_THAT(page.texts(svg + "/desc"),
              ElementsAre("at 8 us rank 0: x; at 9 us rank 1: x x (fault); at 9 us rank 1: x x; at "
                          "60.000 s rank 0: x x, without rank 1"));
  EXPECT_THAT(page.text(), HasSubstr("5 earlier events left out. 1 more rank left out."));
  std::set<double> rows;
  const auto labels = page.all(svg + "/text[@x > 200]");
  for (const auto& label : labels) rows.insert(number_of(label, "y"));
  EXPECT_EQ(rows.size(), labels.size()) << "no two labels share a row";
}

TEST_F(Pictures, spacetime_joins_what_is_alike) {
  ScenarioResult result = failing_scenario("x", Verdict::kFail);
  auto& events = result.failure->timeline->events;
  events.resize(2);
  events[0] = {.kind = TimelineKind::kFault, .name = "crash", .ranks = {{0, 1}}, .end_ns = 1};
  for (std::uint64_t i = 0; i < 50; ++i) {
    events.push_back({.kind = TimelineKind::kCollective,
                      .name = "all_reduce",
                      .ranks = {{0, 9000}, {1, 9000}},
                      .end_ns = 9001 + i});
  }
  for (const std::int32_t rank : {0, 1}) {
    events.push_back(
        {.kind = TimelineKind::kPhase, .name = "plan", .ranks = {{rank, 10000}}, .end_ns = 11000});
  }
  const DrawnPage page(report_with(result));
  EXPECT_THAT(page.texts(kSpacetime + "/text[@x > 200]"), Contains("all_reduce x 50"));
  EXPECT_EQ(page.all(kSpacetime + "/rect[@class='bar phase']").size(), 2U);
  EXPECT_EQ(page.all(kSpacetime + "/text[. = 'plan']").size(), 1U);
}

TEST_F(Pictures, spacetime_is_for_hangs_faults_and_crashes) {
  ScenarioResult result = failing_scenario("x", Verdict::kFail);
  auto& events = result.failure->timeline->events;
  events = {{.kind = TimelineKind::kCollective, .name = "x", .ranks = {{0, 0}}, .end_ns = 1},
            {.kind = TimelineKind::kEnd, .name = "failed", .ranks = {{0, 1}}, .end_ns = 1}};
  EXPECT_THAT(DrawnPage(report_with(result)).all(kSpacetime), IsEmpty()) << "a mere refusal";
  events[1].name = "hung";
  EXPECT_EQ(DrawnPage(report_with(result)).all(kSpacetime).size(), 1U);
  events = {{.kind = TimelineKind::kCollective,
             .ranks = {{77, UINT64_MAX}},
             .end_ns = 0,
             .missing = {-1}}};
  EXPECT_EQ(DrawnPage(report_with(result)).all(kSpacetime).size(), 1U) << "of a damaged report";
  events.clear();
  EXPECT_THAT(DrawnPage(report_with(result)).all(kSpacetime + "/rect"), IsEmpty());
}

TEST_F(Pictures, wrong_keys_have_the_number_of_their_code_per_rank) {
  ScenarioResult result = failing_scenario("x", Verdict::kFail);
  for (int rank = 2; rank < 40; ++rank) result.failure->wrong_keys->keys[1].ranks.push_back(rank);
  const DrawnPage page(report_with(result));
  const std::string keys = "//details[starts-with(summary, '1 wrong key by rank, in life 1')]";
  const auto cells = page.texts(keys + "//tbody/tr/td");
  ASSERT_GT(cells.size(), 3U);
  EXPECT_EQ(cells[1] + " " + cells[2] + " " + cells[3], "1 1,2 2");
  EXPECT_THAT(page.texts(keys + "/p"), ElementsAre("1 is x, 2 is B. 3 more findings left out. "
                                                   "8 more ranks left out."));
}

TEST_F(Pictures, ranks_with_equal_numbers_share_a_row) {
  ScenarioResult result{.name = "x", .verdict = Verdict::kFail, .code = "x"};
  for (int rank = 0; rank < 200; ++rank) {
    result.ranks.push_back({.rank = rank, .bit_mismatches = rank < 3 ? 5U : rank % 2U});
  }
  const DrawnPage page(report_with(result));
  const auto ranks = page.texts("//details[summary='What each rank compared']//tr/td[1]");
  ASSERT_EQ(ranks.size(), 3U);
  EXPECT_EQ(ranks[0], "ranks 0-2");
}

TEST_F(Pictures, ranks_show_each_kind_of_trouble_and_omit_excused_keys) {
  const DrawnPage page(report_with(failing_scenario("x", Verdict::kFail)));
  EXPECT_THAT(page.texts("//details[summary='What each rank compared']//tbody/tr"),
              ElementsAre("rank 031000"
                          "0000",
                          "rank 131070.5"
                          "1111"));
  EXPECT_THAT(page.texts("//details[contains(summary, 'missing or of another form')]//tbody/tr"),
              ElementsAre("rank 1xnot stored", "rank 1xother shape",
                          "rank 1xstored but not requested", "rank 1xother dtype"));
}

TEST_F(Pictures, expected_stands_beside_found_and_what_is_missing_is_hatched) {
  ScenarioResult result = failing_scenario("x", Verdict::kFail);
  result.failure->loaded = "not stored";
  const DrawnPage page(report_with(result));
  EXPECT_THAT(page.texts("//div[@class='values']/div"),
              ElementsAre("expected: what was savedx", "found: what was loadednot stored"));
  EXPECT_THAT(page.texts("//div[@class='side found missing']/code"), ElementsAre("not stored"));
}

TEST_F(Pictures, the_matrix_is_a_table_of_families_and_codes) {
  Report report = sample_report();
  report.matrix =
      Matrix{.mutants = 2,
             .scenarios = {"cache/a", "cache/b", "save/c"},
             .rows = {{.mutant = "m", .cells = "Cpn", .caught = {{"cache/a", {"ZERO_FILL"}}}},
                      {.mutant = "n", .cells = ".p", .caught = {{"save/c", {"WRONG_OWNER"}}}}}};
  const DrawnPage page(report);
  EXPECT_THAT(page.texts("//section[@id='matrix']//th"),
              ElementsAre("mutant", "cache", "save", "codes"));
  EXPECT_THAT(page.texts("//section[@id='matrix']//tbody/tr/td"),
              ElementsAre("m", "1/2", "", "ZERO_FILL", "n", "0/1", "", "WRONG_OWNER"))
      << "a row with too few cells is of a damaged report";
}

}  // namespace
}  // namespace reprise::reports
