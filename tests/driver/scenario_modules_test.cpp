// Tests the scenario language for jobs of several modules, and for the options of saves and loads.

#include <gtest/gtest.h>

#include "core/base/print.hpp"
#include "driver/language/scenario.hpp"
#include "driver/language/scenario_writer.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::driver {
namespace {

using contracts::error_of;

const std::string kGood = R"(proves: something
job:
  modules:
    vision: {model: vision-tiny, layout: tp2}
    language: {model: language-tiny, layout: {tp: 2, pp: 3}, sharding: dp_reshardable}
  optimizer: {kind: adam, sharding: fsdp_dtensor}
steps:
  - train: 3
  - save
  - restart: {keys: prefixed}
  - train: 2
expect: {max_delta: 0}
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string vision(const std::string& module) {
  return with("{model: vision-tiny, layout: tp2}", module);
}
std::string restart(const std::string& options) {
  return with("restart: {keys: prefixed}", "restart: {" + options + "}");
}

Scenario parsed(const std::string& text) { return parse_scenario(text, "x.yaml"); }

std::string grids_of(const LifePlan& plan) { return sim::to_string(plan.modules); }

TEST(ScenarioModules, stand_side_by_side_in_the_order_written) {
  const Scenario scenario = parsed(kGood);
  const LifePlan& plan = scenario.lives.front();
  EXPECT_EQ(grids_of(plan), "vision: tp2 on 0 1, language: tp2 pp3 on 2 3 4 5 6 7");
  EXPECT_EQ(plan.world_size(), 8);
  EXPECT_EQ(plan.modules[0].model, "vision-tiny");
  EXPECT_EQ(plan.modules[0].optimizer_sharding, sim::Sharding::kFsdpDtensor) << "the job's";
  EXPECT_EQ(plan.modules[1].optimizer_sharding, sim::Sharding::kDpReshardable);
  EXPECT_EQ(plan.modules[1].loss_scale, sim::LossScale{});
  EXPECT_FALSE(plan.modules[1].frozen);
  EXPECT_EQ(scenario.model, "") << "a job of one model";
  EXPECT_EQ(scenario.lives[1].modules, plan.modules) << "they keep their ranks";
}

TEST(ScenarioModules, have_settings_and_ranks_of_their_own) {
  const auto scenario = parsed(vision(
      "{model: vision-tiny, layout: dp2, ranks: [7, 6], loss_scale: 65536, growth_interval: 2, "
      "frozen: true}"));
  const sim::ModuleConfig& module = scenario.lives.front().modules.front();
  EXPECT_EQ(module.loss_scale.scale, 65536);
  EXPECT_EQ(module.loss_scale.growth_interval, 2);
  EXPECT_TRUE(module.frozen);
  EXPECT_EQ(grids_of(scenario.lives.front()),
            "vision: dp2 on 7 6, language: tp2 pp3 on 0 1 2 3 4 5")
      << "automatic ranks begin at 0";
}

TEST(ScenarioModules, stand_on_the_same_ranks_if_told) {
  const auto text = with("  optimizer", "  place: colocated\n  optimizer");
  const auto error = error_of([&] { parsed(text); });
  ASSERT_TRUE(error) << "layouts of two and of six ranks";
  auto same = text;
  same.replace(same.find("layout: tp2}"), 12, "layout: dp6}");
  const LifePlan plan = parsed(same).lives.front();
  EXPECT_EQ(grids_of(plan), "vision: dp6 on 0 1 2 3 4 5, language: tp2 pp3 on 0 1 2 3 4 5");
  EXPECT_EQ(plan.world_size(), 6);
  same.replace(same.find("layout: dp6}"), 12, "layout: dp6, ranks: [5, 4, 3, 2, 1, 0]}");
  EXPECT_EQ(grids_of(parsed(same).lives.front()),
            "vision: dp6 on 5 4 3 2 1 0, language: tp2 pp3 on 0 1 2 3 4 5");
}

TEST(ScenarioModules, a_restart_gives_them_whole_but_for_models_that_are_known) {
  const auto scenario = parsed(
      restart("modules: {language: {layout: {tp: 2}}, audio: {model: audio-tiny, layout: dp2, "
              "loss_scale: 1024}}, sharding: dp_reshardable, adds: [audio], drops: [vision]"));
  const LifePlan& plan = scenario.lives[1];
  EXPECT_EQ(grids_of(plan), "language: tp2 on 0 1, audio: dp2 on 2 3");
  EXPECT_EQ(plan.modules[0].model, "language-tiny");
  EXPECT_EQ(plan.modules[0].optimizer_sharding, sim::Sharding::kDpReshardable);
  EXPECT_EQ(plan.load.adds, std::vector<std::string>{"audio"});
  EXPECT_EQ(plan.load.drops, std::vector<std::string>{"vision"});
}

TEST(ScenarioModules, a_restart_may_put_them_elsewhere_and_leave_them_as_they_are) {
  const auto text = with("layout: {tp: 2, pp: 3}", "layout: {order: dp-tp, dp: 2}");
  auto placed = text;
  placed.replace(placed.find("keys: prefixed"), 14, "place: colocated");
  EXPECT_EQ(grids_of(parsed(placed).lives[1]),
            "vision: tp2 on 0 1, language: dp2 order dp-tp on 0 1");
  auto again = text;
  again.replace(again.find("keys: prefixed"), 14,
                "modules: {vision: {layout: tp1}, language: {layout: {dp: 3}}}");
  EXPECT_EQ(grids_of(parsed(again).lives[1]),
            "vision: tp1 on 0, language: dp3 order dp-tp on 1 2 3")
      << "a layout keeps its order";
}

TEST(ScenarioModules, a_one_model_job_may_restart_as_modules_and_refuse_it) {
  std::string text = kGood;
  const auto at = text.find("  modules:");
  text.replace(at, text.find("  optimizer") - at,
               "  model: gpt-tiny\n  layout: tp2\n  ranks: [5, 3]\n");
  text.replace(text.find("keys: prefixed"), 14, "modules: {m: {model: gpt-tiny, layout: dp3}}");
  const Scenario scenario = parsed(text);
  EXPECT_EQ(scenario.lives[1].world_size(), 3);
  EXPECT_EQ(scenario.lives[1].layout, sim::Layout{})
      << "the layout has no meaning if there are modules";
  EXPECT_TRUE(scenario.lives[1].ranks.empty()) << "likewise";
  EXPECT_EQ(parse_scenario(to_yaml(scenario), "x.yaml"), scenario) << to_yaml(scenario);
}

TEST(ScenarioModules, grids_that_do_not_fit_are_left_to_the_job_to_refuse) {
  for (const char* ranks : {"[1, 2]", "[8, 9]"}) {
    const auto text =
        vision("{model: vision-tiny, layout: tp2, ranks: " + std::string(ranks) + "}");
    EXPECT_FALSE(error_of([&] { parsed(text); })) << ranks;
  }
}

TEST(ScenarioModules, values_of_a_table_stand_for_layouts_ranks_and_whole_modules) {
  const std::string head =
      "each: [{m: {a: {model: audio-tiny, layout: tp2}}, l: tp2, r: [0, 1]}, "
      "{m: {b: {model: audio-tiny, layout: dp3}}, l: {dp: 2}, r: [1, 0]}]\n";
  const auto rows =
      parse_scenarios(head + restart("modules: $m, adds: [], finetune: true")
                                 .replace(kGood.find("layout: tp2}"), 12, "layout: $l, ranks: $r}"),
                      "t.yaml");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].lives[0].modules[0].layout, sim::parse_layout("tp2"));
  EXPECT_EQ(rows[1].lives[0].modules[0].layout, sim::parse_layout("dp2"));
  EXPECT_EQ(join(rows[1].lives[0].modules[0].ranks, " "), "1 0");
  EXPECT_EQ(grids_of(rows[0].lives[1]), "a: tp2 on 0 1");
  EXPECT_EQ(grids_of(rows[1].lives[1]), "b: dp3 on 0 1 2");
}

TEST(ScenarioModules, a_table_knows_the_ranks_of_all_of_them) {
  const auto rows = parse_scenarios("each: {rank: all}\n" + with("- train: 3",
                                                                 "- train: 3\n"
                                                                 "  - fault: {kind: crash, rank: "
                                                                 "$rank, phase: commit}"),
                                    "t.yaml");
  EXPECT_EQ(rows.size(), 8U);
}

TEST(ScenarioOptions, of_saves_and_loads) {
  const auto text =
      with("- train: 3\n  - save", "- train: {steps: 6, save_interval: 2}\n  - release");
  const Scenario scenario = parsed(text);
  const auto& actions = scenario.lives.front().actions;
  EXPECT_EQ(std::get<TrainAction>(actions[0]), (TrainAction{6, 2}));
  EXPECT_TRUE(std::holds_alternative<ReleaseAction>(actions[1]));

  const LifePlan plan =
      parsed(restart("no_load_optim: true, no_load_scheduler: true, no_load_rng: true, "
                     "finetune: true, group_order: plain_first, keys: bare"))
          .lives[1];
  EXPECT_EQ(plan.load, (sim::LoadChoice{false, false, false, true}));
  EXPECT_TRUE(plan.plain_first);
  EXPECT_EQ(plan.keys, sim::KeyForm::kBare);
}

TEST(ScenarioOptions, forms_stay_and_what_a_load_leaves_behind_does_not) {
  auto text = with("  optimizer", "  group_order: plain_first\n  random_by_dp: true\n  optimizer");
  text.replace(text.find("keys: prefixed"), 14, "keys: bare, no_load_rng: true");
  text.replace(text.find("  - train: 2"), 12, "  - restart");
  const Scenario scenario = parsed(text);
  EXPECT_TRUE(scenario.random_by_dp);
  EXPECT_TRUE(scenario.lives[2].plain_first);
  EXPECT_EQ(scenario.lives[2].keys, sim::KeyForm::kBare);
  EXPECT_FALSE(scenario.lives[1].load.random);
  EXPECT_TRUE(scenario.lives[2].load.random);
}

TEST(ScenarioOptions, an_interval_saves_if_training_comes_by_it) {
  const auto train = [](const std::string& first, const std::string& second) {
    return with("- train: 3\n  - save", "- train: " + first + "\n  - train: " + second);
  };
  EXPECT_FALSE(error_of([&] { parsed(train("3", "{steps: 1, save_interval: 4}")); }));
  EXPECT_TRUE(error_of([&] { parsed(train("4", "{steps: 3, save_interval: 4}")); }));
}

TEST(ScenarioModules, are_read_again_when_they_are_written) {
  Scenario scenario = parsed(restart(
      "modules: {language: {layout: tp2, ranks: [3, 0]}, audio: {model: audio-tiny, layout: dp2, "
      "ranks: [1, 2], loss_scale: 65536, growth_interval: 1, frozen: true}}, "
      "sharding: dp_reshardable, adds: [audio], drops: [vision], no_load_optim: true, "
      "no_load_scheduler: true, no_load_rng: true, finetune: true, keys: bare, rerun: "
      "validate_results"));
  scenario.random_by_dp = true;
  scenario.lives[0].plain_first = true;
  scenario.lives[0].actions = {TrainAction{4, 2}, SaveAction{}, ReleaseAction{}};
  const std::string text = to_yaml(scenario);
  EXPECT_EQ(parsed(text), scenario) << text;
  EXPECT_EQ(to_yaml(parsed(text)), text);
}

TEST(ScenarioModules, mistakes_are_refused_with_file_line_and_a_suggestion) {
  struct Row {
    std::string text;
    std::string says;
    std::string place;
  };
  const std::vector<Row> rows = {
      {vision("{modell: vision-tiny, layout: tp2}"), "did you mean 'model'", "x.yaml:4"},
      {vision("{model: vision-tyni, layout: tp2}"), "vision-tiny", "x.yaml:4"},
      {vision("{model: vision-tiny}"), "lacks 'layout'", "x.yaml:4"},
      {vision("{layout: tp2}"), "lacks 'model'", "x.yaml:4"},
      {vision("{model: vision-tiny, layout: tq2}"), "impossible layout", "x.yaml:4"},
      {vision("{model: vision-tiny, layout: ep2 dp2}"), "no experts", "x.yaml:4"},
      {vision("{model: vision-tiny, layout: tp2, frozne: true}"), "did you mean 'frozen'",
       "x.yaml:4"},
      {vision("{model: vision-tiny, layout: tp2, ranks: [0]}"), "1 ranks for a layout of 2",
       "x.yaml:4"},
      {vision("{model: vision-tiny, layout: tp2, ranks: [0, 0]}"), "distinct ranks", "x.yaml:4"},
      {vision("{model: vision-tiny, layout: tp2, ranks: [0, 1024]}"), "0 to 1023", "x.yaml:4"},
      {vision("{model: vision-tiny, layout: dp1020}"), "needs 1026 ranks", "x.yaml:4"},
      {vision("{model: vision-tiny, layout: tp2, loss_scale: 1000}"), "power of two", "x.yaml:4"},
      {vision("{model: vision-tiny, layout: tp2, loss_scale: 0}"), "from 1 to", "x.yaml:4"},
      {vision("{model: vision-tiny, layout: tp2, growth_interval: 0}"), "from 1 to", "x.yaml:4"},
      {vision("{model: vision-tiny, layout: tp2, sharding: whole}"), "unknown sharding",
       "x.yaml:4"},
      {vision("tp2"), "mapping", "x.yaml:4"},
      {with("vision: ", "vision.a: "), "name of a module", "x.yaml:4"},
      {with("vision: ", "Vision: "), "name of a module", "x.yaml:4"},
      {with("vision: ", "7th: "), "name of a module", "x.yaml:4"},
      {with("vision: ", "'': "), "no name", "x.yaml:4"},
      {with("vision: ", "language: "), "'language' twice", "x.yaml"},
      {with("  modules:", "  model: gpt-tiny\n  modules:"), "says model", "x.yaml:3"},
      {with("  modules:", "  layout: tp2\n  modules:"), "says layout", "x.yaml:3"},
      {with("  modules:", "  ranks: [0]\n  modules:"), "says ranks", "x.yaml:3"},
      {with("  modules:", "  place: disjiont\n  modules:"), "did you mean 'disjoint'", "x.yaml:3"},
      {with("  modules:", "  place: colocated\n  modules:"), "vision has 2, language 6",
       "x.yaml:3"},
      {with("  modules:", "  group_order: plane_first\n  modules:"), "did you mean 'plain_first'",
       "x.yaml:3"},
      {with("  modules:", "  keys: bar\n  modules:"), "did you mean 'bare'", "x.yaml:3"},
      {with("  modules:", "  finetune: true\n  modules:"), "unknown key 'finetune'", "x.yaml:3"},
      {restart("layout: tp2"), "the job has modules", "x.yaml:10"},
      {restart("ranks: [0, 1]"), "each with its own ranks", "x.yaml:10"},
      {restart("layout: tp2, modules: {vision: {layout: tp2}}"), "says layout", "x.yaml:10"},
      {restart("modules: {}"), "1 to 8 modules", "x.yaml:10"},
      {restart("modules: {audio: {layout: tp2}}"), "lacks 'model'", "x.yaml:10"},
      {restart("sharding: dp_reshardable"), "name the modules", "x.yaml:10"},
      {restart("place: colocated"), "give their layouts the same size", "x.yaml:10"},
      {restart("adds: [visoin]"), "did you mean 'vision'", "x.yaml:10"},
      {restart("adds: [mimo.audio]"), "name of a module", "x.yaml:10"},
      {restart("drops: [vision]"), "still has", "x.yaml:10"},
      {restart("no_load_optimizer: true"), "did you mean 'no_load_optim'", "x.yaml:10"},
      {restart("finetune: perhaps"), "true or false", "x.yaml:10"},
      {with("- train: 3", "- train: {save_interval: 2}"), "lacks 'steps'", "x.yaml:8"},
      {with("- train: 3", "- train: {steps: 2, save_interval: 0}"), "from 1 to", "x.yaml:8"},
      {with("- train: 3", "- train: {steps: 2, save_intervall: 1}"), "did you mean 'save_interval'",
       "x.yaml:8"},
      {with("- save\n", "- save\n  - release\n  - train: 1\n"), "must be the last steps", "x.yaml"},
      {with("- train: 2", "- release"), "nothing loads it", "x.yaml"},
      {with("  optimizer: {kind: adam, sharding: fsdp_dtensor}\n", ""), "lacks 'optimizer'",
       "x.yaml"},
  };
  for (const auto& row : rows) {
    const auto error = error_of([&] { parsed(row.text); });
    ASSERT_TRUE(error) << row.says << "\n" << row.text;
    EXPECT_EQ(error->code(), Code::kUsage) << error->what();
    EXPECT_NE(std::string(error->what()).find(row.says), std::string::npos)
        << "wanted: " << row.says << "\ngot: " << error->what();
    EXPECT_EQ(error->place().file.substr(0, row.place.size()), row.place) << error->what();
  }
}

}  // namespace
}  // namespace reprise::driver
