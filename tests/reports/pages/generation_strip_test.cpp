// Tests the strip of a scenario's checkpoints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "reports/pages/pages.hpp"
#include "reports/pages/pictures.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ScenarioResult pruning_scenario() {
  ScenarioResult result = sample_scenario("prune");
  result.generations = {{.step = 2, .life = 0, .state = "pruned"},
                        {.step = 4, .life = 0, .state = "kept", .loaded_by = {1, 2, 3, 4}},
                        {.step = 6, .life = 1, .state = "damaged", .skipped_by = {2}},
                        {.step = 8, .life = 1, .state = "unfinished"},
                        {.step = 6, .life = 2, .state = "kept"}};
  return result;
}

TEST(GenerationStrip, names_each_checkpoint_with_step_life_state_and_loads) {
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(generations_figure(pruning_scenario()).c_str()));
  const auto svg = document.child("figure").child("div").child("svg");
  EXPECT_STREQ(svg.child_value("title"), "Checkpoints of prune");
  std::vector<std::string> boxes;
  for (const auto& box : svg.children("rect")) {
    boxes.push_back(std::string(box.attribute("class").value()) + "; " + box.child_value("title"));
  }
  EXPECT_THAT(boxes,
              ElementsAre("generation pruned; step 2, saved by life 0: pruned",
                          "generation kept; step 4, saved by life 0: kept, loaded by 1, 2 +2",
                          "generation damaged; step 6, saved by life 1: damaged, skipped by 2",
                          "generation unfinished; step 8, saved by life 1: unfinished",
                          "generation kept; step 6, saved by life 2: kept"));
  std::vector<std::string> texts;
  for (const auto& text : svg.children("text")) texts.emplace_back(text.child_value());
  EXPECT_THAT(texts, ElementsAre("life 0", "step 2", "pruned", "step 4", "kept",
                                 "loaded by 1, 2 +2", "life 1", "step 6", "damaged", "skipped by 2",
                                 "life 1", "step 8", "unfinished", "life 2", "step 6", "kept"))
      << "a row begins with its life";
}

TEST(GenerationStrip, is_as_narrow_as_a_phone_and_counts_what_it_leaves_out) {
  ScenarioResult result = sample_scenario("many");
  for (std::int64_t step = 1; step <= 100; ++step) {
    result.generations.push_back({.step = step, .state = "kept"});
  }
  const std::string figure = generations_figure(result);
  EXPECT_THAT(figure, HasSubstr("step 60<"));
  EXPECT_THAT(figure, Not(HasSubstr("step 61<")));
  EXPECT_THAT(figure, HasSubstr("40 more checkpoints."));
  EXPECT_THAT(figure, Not(HasSubstr("class=\"wide\"")));
  EXPECT_EQ(generations_figure(sample_scenario("none")), "");
}

TEST(GenerationStrip, is_counted_in_the_table_of_all_scenarios) {
  EXPECT_EQ(generations_text(pruning_scenario()),
            "2 kept, 1 pruned, 1 damaged, 1 unfinished, 1 fallen back from");
  EXPECT_EQ(generations_text(sample_scenario("none")), "");
  Report report = sample_report();
  report.scenarios[0] = pruning_scenario();
  EXPECT_THAT(to_html(report, ""), HasSubstr("<td>2 kept, 1 pruned, 1 damaged, 1 unfinished"));
}

TEST(GenerationStrip, a_state_of_a_damaged_report_is_no_part_of_the_page) {
  ScenarioResult result = sample_scenario("x");
  result.generations = {{.step = INT64_MIN, .life = SIZE_MAX, .state = "<b>"}};
  const std::string figure = generations_figure(result);
  EXPECT_THAT(figure, HasSubstr("class=\"generation\""));
  EXPECT_THAT(figure, Not(HasSubstr("<b>")));
}

}  // namespace
}  // namespace reprise::reports
