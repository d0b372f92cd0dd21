// Tests what is said of the checkpoints that a scenario's lives saved.

#include "driver/judges/generations.hpp"

#include <gtest/gtest.h>

#include "driver/judges/verdict.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using test::Rig;
using test::scenario_of;

/// Returns one line per checkpoint, such as "2 by 0: kept, loaded 1".
std::string text_of(const std::vector<reports::Generation>& generations) {
  std::string text;
  for (const auto& one : generations) {
    text += std::to_string(one.step) + " by " + std::to_string(one.life) + ": " + one.state;
    for (const auto life : one.loaded_by) text += ", loaded " + std::to_string(life);
    for (const auto life : one.skipped_by) text += ", skipped " + std::to_string(life);
    text += "\n";
  }
  return text;
}

std::string generations_in(const Scenario& scenario) {
  Rig rig(scenario);
  return text_of(judge(rig.scenario(), rig.run_all()).generations);
}

const std::vector<Action> kSaveTwice = {TrainAction{2}, SaveAction{}, TrainAction{2}, SaveAction{}};

TEST(GenerationsOf, what_the_next_life_loads_is_marked_and_the_rest_is_kept) {
  EXPECT_EQ(generations_in(scenario_of({{"tp2", kSaveTwice}, {"tp1", kSaveTwice}})),
            "2 by 0: kept\n4 by 0: kept, loaded 1\n6 by 1: kept\n8 by 1: kept\n");
}

TEST(GenerationsOf, what_retention_removes_is_pruned) {
  Scenario scenario = scenario_of({{"tp2", kSaveTwice}, {"tp2", kSaveTwice}});
  scenario.checkpoint.keep = 1;
  EXPECT_EQ(generations_in(scenario),
            "2 by 0: pruned\n4 by 0: pruned, loaded 1\n6 by 1: pruned\n8 by 1: kept\n");
}

TEST(GenerationsOf, a_damaged_checkpoint_is_skipped_and_replaced_by_a_later_save) {
  DamageAction damage;
  damage.what = sim::FileKind::kMetadata;
  damage.remove = true;
  auto first = kSaveTwice;
  first.emplace_back(damage);
  Scenario scenario = scenario_of({{"tp2", first}, {"tp2", {TrainAction{1}}}});
  scenario.checkpoint.falls_back = true;
  scenario.expect.outcomes = {Outcome::kFellBack};
  EXPECT_EQ(generations_in(scenario), "2 by 0: kept, loaded 1\n4 by 0: damaged, skipped 1\n");
  scenario.lives[1].actions = {TrainAction{2}, SaveAction{}};
  EXPECT_EQ(generations_in(scenario),
            "2 by 0: kept, loaded 1\n4 by 0: replaced, skipped 1\n4 by 1: kept\n");
}

TEST(GenerationsOf, a_save_that_a_fault_ended_is_unfinished) {
  FaultAction full;
  full.kind = sim::FaultKind::kNoSpace;
  full.file = sim::FileKind::kPayload;
  EXPECT_EQ(generations_in(scenario_of({{"tp2", {TrainAction{3}, full, SaveAction{}}}})),
            "3 by 0: unfinished\n");
}

TEST(GenerationsOf, a_whole_checkpoint_without_the_tracker_is_unfinished) {
  FaultAction crash;
  crash.kind = sim::FaultKind::kCrash;
  crash.phase = "commit";
  crash.step = "tracker";
  const auto text = [&crash](sim::FaultMoment moment) {
    crash.moment = moment;
    return generations_in(scenario_of(
        {{"tp2", {TrainAction{2}, SaveAction{}, TrainAction{2}, crash, SaveAction{}}}}));
  };
  EXPECT_EQ(text(sim::FaultMoment::kBefore), "2 by 0: kept\n4 by 0: unfinished\n");
  EXPECT_EQ(text(sim::FaultMoment::kAfter), "2 by 0: kept\n4 by 0: kept\n");
}

TEST(GenerationsOf, a_save_that_no_rank_saw_end_counts_if_its_checkpoint_exists) {
  Rig rig(scenario_of({{"tp1", {TrainAction{2}, SaveAction{}}}, {"tp1", {TrainAction{1}}}}));
  auto lives = rig.run_all();
  for (auto& save : lives[0].ranks[0].saves) save.point.certain = false;
  EXPECT_EQ(text_of(generations_of(lives)), "2 by 0: kept, loaded 1\n");
  lives[0].stored_after = std::vector<std::int64_t>{};
  EXPECT_EQ(text_of(generations_of(lives)), "2 by 0: unfinished\n");
}

TEST(GenerationsOf, is_empty_if_nobody_looked_into_the_store) {
  Rig rig(scenario_of({{"tp1", {TrainAction{2}, SaveAction{}}}}));
  auto lives = rig.run_all();
  EXPECT_EQ(generations_of(lives).size(), 1U);
  lives[0].stored_after.reset();
  EXPECT_TRUE(generations_of(lives).empty());
  EXPECT_TRUE(generations_of({}).empty());
}

}  // namespace
}  // namespace reprise::driver
