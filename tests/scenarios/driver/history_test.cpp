// What a scenario's actions tell: saves, parents, and how far random streams have moved.

#include "scenarios/driver/history.hpp"

#include <gtest/gtest.h>

#include "tests/scenarios/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using test::Life;
using test::scenario_of;

TEST(History, lists_saves_with_their_layout_and_the_checkpoint_that_the_job_came_from) {
  const Scenario scenario = scenario_of({
      {"tp2 dp2", {TrainAction{3}, SaveAction{}, TrainAction{2}, SaveAction{}}},
      {"tp4", {TrainAction{1}, SaveAction{}}},
      {"dp3", {}},
  });
  EXPECT_TRUE(saves_before(scenario, 0).empty());
  const auto saves = saves_before(scenario, 2);
  ASSERT_EQ(saves.size(), 3U);
  EXPECT_EQ(saves[0].step, Step{3});
  EXPECT_EQ(saves[0].parent_step, std::nullopt);
  EXPECT_EQ(saves[1].step, Step{5});
  EXPECT_EQ(saves[2].step, Step{6});
  EXPECT_EQ(saves[2].parent_step, 5);
  EXPECT_EQ(saves[2].incarnation, 1U);
  EXPECT_EQ(to_string(saves[2].layout), "tp4");
  EXPECT_EQ(save_of(saves, Step{5}), &saves[1]);
  EXPECT_EQ(save_of(saves, Step{4}), nullptr);
}

TEST(History, a_load_within_a_life_goes_back_to_the_newest_save) {
  const Scenario scenario = scenario_of(
      {{"tp2",
        {TrainAction{2}, SaveAction{}, TrainAction{3}, LoadAction{}, TrainAction{1}, SaveAction{}}},
       {"tp2", {}}});
  const auto saves = saves_before(scenario, 1);
  ASSERT_EQ(saves.size(), 2U);
  EXPECT_EQ(saves[1].step, Step{3});
  EXPECT_EQ(saves[1].parent_step, 2);
  EXPECT_EQ(saves[1].ages.host, 3) << "drawn again, not twice";
}

TEST(History, a_table_of_streams_that_come_back_or_begin_anew) {
  struct Row {
    std::string saved;
    std::string loaded;
    StreamAges ages;  ///< after 3 steps before the save and 1 after the load
  };
  const Row rows[] = {
      {"tp2 dp2", "tp2 dp2", {4, 4}}, {"tp2 dp2", "tp2 dp4", {4, 4}},
      {"tp2 dp2", "tp4", {1, 1}},     {"dp4 ep2", "dp4 ep4", {4, 1}},
      {"dp4 ep2", "dp2 ep2", {4, 4}}, {"tp2 dp2 ep2 etp1", "tp2 dp2 ep2 etp2", {4, 1}},
      {"dp2 pp2", "dp4", {1, 1}},
  };
  for (const Row& row : rows) {
    const Scenario scenario = scenario_of({{row.saved, {TrainAction{3}, SaveAction{}}},
                                           {row.loaded, {TrainAction{1}, SaveAction{}}},
                                           {row.loaded, {}}});
    EXPECT_EQ(saves_before(scenario, 2).back().ages, row.ages) << row.saved << " -> " << row.loaded;
  }
}

TEST(History, a_save_that_did_not_end_may_have_left_the_ones_before_it_back_to_a_certain_one) {
  const auto save = [](std::int64_t step, bool certain) {
    SavePoint point;
    point.step = Step{step};
    point.certain = certain;
    return point;
  };
  struct Row {
    std::vector<SavePoint> saves;
    std::vector<std::size_t> may_stand;  ///< of step 3
  };
  const std::vector<Row> rows = {
      {{}, {}},
      {{save(2, true)}, {}},
      {{save(3, true)}, {0}},
      {{save(3, false)}, {0}},
      {{save(3, true), save(5, false)}, {0}},
      {{save(3, true), save(3, false)}, {1, 0}},
      {{save(3, true), save(3, false), save(5, true), save(3, false)}, {3, 1, 0}},
      {{save(3, true), save(3, false), save(3, true)}, {2}},
      {{save(3, true), save(3, true), save(3, false)}, {2, 1}},
  };
  for (const auto& row : rows) {
    std::vector<std::size_t> found;
    for (const auto* one : saves_that_may_stand(row.saves, Step{3})) {
      found.push_back(static_cast<std::size_t>(one - row.saves.data()));
    }
    EXPECT_EQ(found, row.may_stand);
  }
}

}  // namespace
}  // namespace reprise::driver
