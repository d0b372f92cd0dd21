// Tests that Megatron's options are applied to scenarios, and how each option changes a run.

#include "driver/runs/field_options.hpp"
#include "driver/language/scenario_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;
using testing::HasSubstr;

const char* const kText = R"(
proves: it
job:
  model: gpt-tiny
  layout: dp2
  optimizer: {kind: adam}
steps:
  - train: 3
  - save
  - restart
  - train: 2
expect: {max_delta: 0, against: uninterrupted}
)";

Scenario overridden(const FieldOptions& options) {
  std::vector<Scenario> scenarios = {parse_scenario(kText, "small.yaml")};
  override_by(options, scenarios);
  return scenarios.front();
}

struct Ran {
  reports::ScenarioResult result;
  std::vector<LifeRecord> lives;
};

Ran run_with(const FieldOptions& options) {
  test::Rig rig(overridden(options));
  Ran ran{.result = {}, .lives = rig.run_all()};
  ran.result = judge(rig.scenario(), ran.lives);
  return ran;
}

bool stores(const Ran& ran, std::string_view part) {
  const auto& stored = ran.lives.front().ranks.front().saves.front().stored;
  return std::any_of(stored.begin(), stored.end(), [part](const std::string& key) {
    return key.find(part) != std::string::npos;
  });
}

TEST(FieldOptions, none_keeps_scenarios_and_the_fields_default_sharding) {
  const Scenario plain = overridden({});
  EXPECT_EQ(plain, parse_scenario(kText, "small.yaml"));
  EXPECT_EQ(plain.optimizer_sharding, sim::Sharding::kDpReshardable);
  const Ran ran = run_with({});
  EXPECT_EQ(ran.result.verdict, Verdict::kPass) << ran.result.reason;
  EXPECT_TRUE(stores(ran, ".gbuf_idx_0."));
  EXPECT_TRUE(stores(ran, "rng_state"));
}

TEST(FieldOptions, are_in_the_name_so_results_differ_from_the_catalogue) {
  EXPECT_EQ(overridden({.no_load_rng = true, .finetune = true}).name,
            "small{--no-load-rng --finetune}");
  EXPECT_EQ(to_string({.save_interval = 2, .no_save_optim = true, .no_save_rng = true}),
            "--save-interval 2 --no-save-optim --no-save-rng");
  EXPECT_EQ(
      to_string({.no_load_optim = true, .no_load_scheduler = true, .fully_reshardable = true}),
      "--no-load-optim --no-load-scheduler --dist-ckpt-optim-fully-reshardable");
}

TEST(FieldOptions, of_loads_leave_behind_what_they_name) {
  struct Row {
    FieldOptions options;
    const char* note;
  };
  for (const Row& row : std::vector<Row>{
           {{.no_load_optim = true}, "optimizer state is left behind"},
           {{.no_load_scheduler = true}, "schedule is left behind"},
           {{.no_load_rng = true}, "random states are left behind"},
           {{.finetune = true}, "the weights are taken, and the job is at iteration 0"}}) {
    SCOPED_TRACE(row.note);
    const Ran ran = run_with(row.options);
    EXPECT_EQ(ran.result.verdict, Verdict::kPass) << ran.result.reason;
    EXPECT_TRUE(is_logged(ran.lives.back(), row.note));
    EXPECT_FALSE(is_logged(run_with({}).lives.back(), row.note));
    EXPECT_EQ(ran.lives.back().ranks.front().last_step, row.options.finetune ? 2 : 5);
  }
}

TEST(FieldOptions, of_saves_leave_out_what_they_name) {
  const Ran without_optimizer = run_with({.no_save_optim = true});
  EXPECT_EQ(without_optimizer.result.verdict, Verdict::kPass) << without_optimizer.result.reason;
  EXPECT_FALSE(stores(without_optimizer, "optimizer."));
  const Ran without_random = run_with({.no_save_rng = true});
  EXPECT_EQ(without_random.result.verdict, Verdict::kPass) << without_random.result.reason;
  EXPECT_FALSE(stores(without_random, "rng_state"));
  EXPECT_TRUE(stores(without_random, "optimizer."));
}

TEST(FieldOptions, of_the_interval_and_of_the_sharding_decide_saves) {
  const Ran often = run_with({.save_interval = 2});
  EXPECT_EQ(often.result.verdict, Verdict::kPass) << often.result.reason;
  EXPECT_EQ(often.lives.front().ranks.front().saves.size(), 2U)
      << "one save at step 2 in addition to the one at step 3";
  const Ran reshardable = run_with({.fully_reshardable = true});
  EXPECT_EQ(reshardable.result.verdict, Verdict::kPass) << reshardable.result.reason;
  EXPECT_FALSE(stores(reshardable, ".gbuf_idx_0."));
  EXPECT_TRUE(stores(reshardable, "optimizer.state.exp_avg."));
}

TEST(FieldOptions, of_saves_are_keys_of_checkpoints_in_a_file_too) {
  const std::string text =
      std::string(kText) + "checkpoint: {no_save_optim: true, no_save_rng: true}\n";
  const Scenario scenario = parse_scenario(text, "small.yaml");
  EXPECT_FALSE(scenario.checkpoint.optimizer || scenario.checkpoint.random);
  EXPECT_EQ(parse_scenario(to_yaml(scenario), "small.yaml").checkpoint, scenario.checkpoint);
}

// --- schedules and learning rates ---------------------------------------------------------------

Scenario with_rates(const std::string& rates) {
  std::string text = kText;
  text.replace(text.find("layout: dp2"), 11,
               "layout: dp2\n  schedule: {lr_warmup_steps: 8, lr_decay_steps: 64, max_lr: 0.01, "
               "min_lr: 0.001, lr_decay_style: linear}");
  text.replace(text.find("uninterrupted}"), 13, "uninterrupted, learning_rates: " + rates);
  return parse_scenario(text, "small.yaml");
}

reports::ScenarioResult judged(const Scenario& scenario) {
  test::Rig rig(scenario);
  const auto lives = rig.run_all();
  return judge(scenario, lives);
}

TEST(LearningRates, are_those_that_the_file_says_of_each_step_or_it_fails) {
  // The rate falls linearly from 0.01 at 8 samples to 0.001 at 64. Step n uses the rate at 8 (n -
  // 1) samples.
  const auto right = judged(with_rates("{2: 0.01, 3: 0.0087142857, 4: 0.0074285714}"));
  EXPECT_EQ(right.verdict, Verdict::kPass) << right.reason;
  const auto wrong = judged(with_rates("{4: 0.0087142857}"));
  EXPECT_EQ(wrong.code, "VERDICT_DISAGREEMENT");
  EXPECT_THAT(wrong.reason, HasSubstr("the learning rate of step 4"));
  const auto untaken = judged(with_rates("{6: 0.01}"));
  EXPECT_THAT(untaken.reason, HasSubstr("no rank took it"));
}

TEST(LearningRates, and_the_schedule_stand_in_the_text_of_a_scenario) {
  const Scenario scenario = with_rates("{4: 0.0074285714}");
  EXPECT_EQ(scenario.schedule.lr_decay_style, sim::RateDecay::kLinear);
  const Scenario again = parse_scenario(to_yaml(scenario), "small.yaml");
  EXPECT_EQ(again.schedule, scenario.schedule);
  EXPECT_EQ(again.expect, scenario.expect);
}

}  // namespace
}  // namespace reprise::driver
