// Tests what the history derives from a scenario's actions: the saves, the checkpoint that the
// saving job had loaded, and the positions of random streams.

#include "driver/record/history.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using test::Life;
using test::scenario_of;

TEST(History, lists_saves_with_layout_and_the_checkpoint_they_came_from) {
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
  EXPECT_EQ(saves[2].life, 1U);
  EXPECT_EQ(sim::to_string(saves[2].modules), "tp4");
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
  EXPECT_EQ(saves[1].ages.at("").host, 3) << "steps that are repeated must not count twice";
}

TEST(History, a_table_of_streams_that_come_back_or_begin_anew) {
  struct Row {
    std::string saved;
    std::string loaded;
    StreamAges ages;  ///< in steps: 4 if the load restored the stream, otherwise 1
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
    EXPECT_EQ(saves_before(scenario, 2).back().ages, (Ages{{"", row.ages}}))
        << row.saved << " -> " << row.loaded;
  }
}

// --- jobs of several modules -------------------------------------------------------------------

sim::ModuleConfig module(const std::string& name, const char* layout) {
  return {.name = name, .model = "language-moe", .layout = sim::parse_layout(layout)};
}

using Modules = std::vector<sim::ModuleConfig>;

/// Returns a scenario with a life for each entry of `lives`. The first life trains three steps and
/// saves; each later life trains one step and saves. The last life is run twice.
Scenario lives_of(const std::vector<Modules>& lives) {
  Scenario scenario = scenario_of({});
  for (const auto& modules : lives) {
    LifePlan plan;
    plan.modules = sim::side_by_side(modules);
    plan.actions = {TrainAction{scenario.lives.empty() ? 3 : 1}, SaveAction{}};
    scenario.lives.push_back(plan);
  }
  scenario.lives.emplace_back(scenario.lives.back());
  return scenario;
}

SavePoint last_save(const Scenario& scenario) {
  return saves_before(scenario, scenario.lives.size() - 1).back();
}

TEST(History, streams_of_each_module_come_back_or_begin_anew_on_their_own) {
  struct Row {
    std::string what;
    Modules saved;
    Modules loaded;
    Ages ages;
    bool by_dp = false;
  };
  const Row rows[] = {
      {"both as they were",
       {module("a", "tp2"), module("b", "pp2")},
       {module("a", "tp2 dp2"), module("b", "pp2")},
       {{"a", {4, 4}}, {"b", {4, 4}}}},
      {"one under another tp",
       {module("a", "tp2"), module("b", "pp2")},
       {module("a", "tp1"), module("b", "pp2")},
       {{"a", {1, 1}}, {"b", {4, 4}}}},
      {"experts of one under another ep",
       {module("a", "ep2 dp2"), module("b", "ep2 dp2")},
       {module("a", "ep4 dp4"), module("b", "ep2 dp4")},
       {{"a", {4, 1}}, {"b", {4, 4}}}},
      {"in another order",
       {module("a", "tp2"), module("b", "pp2")},
       {module("b", "pp2"), module("a", "pp2")},
       {{"a", {1, 1}}, {"b", {4, 4}}}},
      {"one is added",
       {module("a", "tp2")},
       {module("a", "tp2"), module("b", "tp2")},
       {{"a", {4, 4}}, {"b", {1, 1}}}},
      {"one is dropped",
       {module("a", "tp2"), module("b", "tp2")},
       {module("b", "tp2")},
       {{"b", {4, 4}}}},
      {"another dp, streams that differ by it",
       {module("a", "dp2"), module("b", "dp2 cp2")},
       {module("a", "dp3"), module("b", "dp4")},
       {{"a", {1, 4}}, {"b", {4, 4}}},
       true},
  };
  for (const Row& row : rows) {
    Scenario scenario = lives_of({row.saved, row.loaded});
    scenario.random_by_dp = row.by_dp;
    EXPECT_EQ(last_save(scenario).ages, row.ages) << row.what;
  }
}

TEST(History, saves_know_the_modules_and_their_ranks) {
  const auto save = last_save(lives_of({{module("a", "tp2"), module("b", "pp2")}}));
  EXPECT_EQ(sim::to_string(save.modules), "a: tp2 on 0 1, b: pp2 on 2 3");
  EXPECT_EQ(sim::to_string(last_save(scenario_of({{"tp2", {SaveAction{}}}, {"tp2", {}}})).modules),
            "tp2");
}

/// A change to the second life, made before the save that the test examines.
struct TurnRow {
  std::string what;
  std::function<void(Scenario&)> change;
  std::vector<Turn> turns;
  std::int64_t step = 4;
  StreamAges ages = {4, 4};
};

TEST(History, some_loads_make_the_uninterrupted_job_turn_too) {
  const auto life = [](Scenario& scenario, std::size_t i) -> LifePlan& {
    return scenario.lives[i];
  };
  const auto saves_without_optimizer = [&](Scenario& scenario) {
    std::get<SaveAction>(life(scenario, 0).actions[1]).optimizer = false;
  };
  const std::vector<TurnRow> rows = {
      {"a plain load", [](Scenario&) {}, {}},
      {"another layout",
       [&](Scenario& s) {
         life(s, 1).modules[0].layout = sim::parse_layout("tp2 dp2");
         life(s, 1).modules[0].ranks = {};
       },
       {}},
      {"no-load-optim", [&](Scenario& s) { life(s, 1).load.optimizer = false; }, {{Step{3}, 1}}},
      {"no-load-scheduler", [&](Scenario& s) { life(s, 1).load.schedule = false; }, {{Step{3}, 1}}},
      {"no-load-rng moves streams alone",
       [&](Scenario& s) { life(s, 1).load.random = false; },
       {},
       4,
       {1, 1}},
      {"no-save-rng",
       [&](Scenario& s) { std::get<SaveAction>(life(s, 0).actions[1]).random = false; },
       {},
       4,
       {1, 1}},
      {"finetune",
       [&](Scenario& s) { life(s, 1).load.finetune = true; },
       {{Step{3}, 1}},
       1,
       {1, 1}},
      {"no-save-optim", saves_without_optimizer, {{Step{3}, 1, false}}},
      {"a frozen module is not trained any more",
       [&](Scenario& s) { life(s, 1).modules[0].frozen = true; },
       {{Step{3}, 1}}},
      {"a module is added",
       [&](Scenario& s) {
         life(s, 1).modules.push_back(module("b", "tp1"));
         life(s, 1).modules.back().ranks = {{2}};
       },
       {{Step{3}, 1}}},
      {"a module is another",
       [&](Scenario& s) { life(s, 1).modules[0].name = "b"; },
       {{Step{3}, 1}},
       4,
       {1, 1}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    Scenario scenario = lives_of({{module("a", "tp2")}, {module("a", "tp2")}});
    row.change(scenario);
    const SavePoint save = last_save(scenario);
    EXPECT_EQ(save.turns, row.turns);
    EXPECT_EQ(save.step, Step{row.step});
    EXPECT_EQ(save.parent_step, 3);
    EXPECT_EQ(save.ages.begin()->second, row.ages);
  }
}

TEST(History, a_release_turns_to_iteration_0_with_new_streams) {
  const Scenario scenario = lives_of({{module("a", "tp2")}, {module("a", "tp2")}});
  SavePoint release = saves_before(scenario, 1).back();
  release.release = true;
  Position position(scenario, 1);
  position.load(release);
  EXPECT_EQ(position.step, Step{0});
  EXPECT_EQ(position.parent_step, 3);
  EXPECT_EQ(position.ages, (Ages{{"a", {0, 0}}}));
  EXPECT_EQ(position.turns, (std::vector<Turn>{{Step{3}, 1, true, true}}));
}

TEST(History, streams_left_behind_by_a_load_within_a_life_begin_anew) {
  Scenario scenario = lives_of({{module("a", "tp2")}, {module("a", "tp2")}});
  scenario.lives[1].actions = {TrainAction{2}, LoadAction{}, TrainAction{1}, SaveAction{}};
  EXPECT_EQ(last_save(scenario).ages, (Ages{{"a", {4, 4}}}));
  scenario.lives[1].load.random = false;
  EXPECT_EQ(last_save(scenario).ages, (Ages{{"a", {1, 1}}}));
}

TEST(History, turns_add_up_over_lives_and_follow_the_loaded_checkpoint) {
  Scenario scenario = lives_of({{module("a", "tp2")}, {module("a", "tp2")}, {module("a", "tp2")}});
  scenario.lives[1].load.schedule = false;
  scenario.lives[2].load.optimizer = false;
  const auto saves = saves_before(scenario, 3);
  ASSERT_EQ(saves.size(), 3U);
  EXPECT_TRUE(saves[0].turns.empty());
  EXPECT_EQ(saves[1].turns, (std::vector<Turn>{{Step{3}, 1}}));
  EXPECT_EQ(saves[2].turns, (std::vector<Turn>{{Step{3}, 1}, {Step{4}, 2}}));
  Position position(scenario, 2);
  position.load(saves[1]);
  position.load(saves[0]);
  EXPECT_EQ(position.turns, (std::vector<Turn>{{Step{3}, 2}})) << "the older save's turns";
}

TEST(History, an_unfinished_save_may_have_left_any_back_to_a_certain_one) {
  const auto save = [](std::int64_t step, bool certain) {
    SavePoint point;
    point.step = Step{step};
    point.certain = certain;
    return point;
  };
  struct Row {
    std::vector<SavePoint> saves;
    /// Indices of the saves that may have written the remaining checkpoint of step 3.
    std::vector<std::size_t> may_stand;
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
