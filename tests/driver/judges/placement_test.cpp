// Tests how the cut of a wrong tensor is found, for the save and for the load.

#include "driver/judges/placement.hpp"

#include <gtest/gtest.h>

#include "driver/judges/verdict.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using reports::TensorCut;
using reports::TensorPlacement;
using test::Rig;
using test::scenario_of;
using Numbers = std::vector<std::int64_t>;

const char* const kEmbedding = "embedding.word_embeddings.weight";

/// Returns the boxes as text: "[0:8, 0:4] 0 2; ..."
std::string text_of(const std::optional<TensorCut>& cut) {
  if (!cut) return "none";
  std::string text;
  for (const auto& box : cut->boxes) {
    text += text.empty() ? "[" : "; [";
    for (std::size_t d = 0; d < box.offset.size(); ++d) {
      text += (d == 0 ? "" : ", ") + std::to_string(box.offset[d]) + ":" +
              std::to_string(box.offset[d] + box.extent[d]);
    }
    text += "]";
    for (const auto rank : box.ranks) text += " " + std::to_string(rank);
  }
  return text;
}

Rig rig_of(const std::string& before, const std::string& after,
           const std::string& model = "gpt-tiny") {
  return Rig(
      scenario_of({{before, {TrainAction{1}, SaveAction{}}}, {after, {TrainAction{1}}}}, model));
}

TEST(PlacementOf, shows_both_layouts_with_copies_of_each_part__tp2_dp2_to_tp4) {
  Rig rig = rig_of("tp2 dp2", "tp4");
  const auto lives = rig.run_all();
  const auto placement = placement_of(rig.scenario(), lives,
                                      {.life = 1, .key = kEmbedding, .rank = 3, .index = {0, 1}});
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->key, kEmbedding);
  EXPECT_EQ(placement->rank, 3);
  EXPECT_EQ(placement->index, (Numbers{0, 1}));
  ASSERT_EQ(placement->shape.size(), 2U);
  const std::string half = std::to_string((placement->shape[0] + 1) / 2);
  const std::string rows = std::to_string(placement->shape[0]);
  const std::string wide = ", 0:" + std::to_string(placement->shape[1]) + "]";
  EXPECT_EQ(text_of(placement->saved),
            "[0:" + half + wide + " 0 2; [" + half + ":" + rows + wide + " 1 3");
  ASSERT_TRUE(placement->loaded);
  EXPECT_EQ(placement->loaded->boxes.size(), 4U);
  EXPECT_EQ(placement->saved->life, 0U);
  EXPECT_EQ(placement->saved->layout, "tp2 dp2");
  EXPECT_EQ(placement->loaded->life, 1U);
  EXPECT_EQ(placement->loaded->layout, "tp4");
}

TEST(PlacementOf, a_tensor_wrong_in_the_save_has_the_next_life_as_its_load) {
  Rig rig = rig_of("tp2", "tp4");
  std::vector<LifeRecord> lives = {rig.run(0)};
  const auto placement =
      placement_of(rig.scenario(), lives, {.life = 0, .at_save = true, .key = kEmbedding});
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->saved->life, 0U);
  ASSERT_TRUE(placement->loaded) << "it is planned, and was not run";
  EXPECT_EQ(placement->loaded->boxes.size(), 4U);
  EXPECT_TRUE(placement->index.empty());
}

TEST(PlacementOf, the_save_is_the_one_that_was_loaded_and_not_the_last) {
  auto scenario = scenario_of({{"tp2", {TrainAction{1}, SaveAction{}}},
                               {"tp4", {TrainAction{1}, SaveAction{}}},
                               {"tp1", {TrainAction{1}}}});
  Rig rig(scenario);
  auto lives = rig.run_all();
  ASSERT_EQ(lives.size(), 3U);
  const WrongTensor wrong{.life = 2, .key = kEmbedding};
  EXPECT_EQ(placement_of(rig.scenario(), lives, wrong)->saved->life, 1U);
  for (auto& rank : lives[2].ranks) rank.loads.back().step = 1;
  EXPECT_EQ(placement_of(rig.scenario(), lives, wrong)->saved->life, 0U);
  for (auto& rank : lives[2].ranks) rank.loads.back().step = 77;
  EXPECT_FALSE(placement_of(rig.scenario(), lives, wrong)->saved) << "no life saved step 77";
}

TEST(PlacementOf, the_save_has_the_boxes_passed_to_it_even_if_wrong) {
  Rig rig = rig_of("tp2", "tp2");
  auto lives = rig.run_all();
  const WrongTensor wrong{.life = 1, .key = kEmbedding};
  const std::string right = text_of(placement_of(rig.scenario(), lives, wrong)->saved);
  for (auto& item : lives[0].ranks[1].audits.back().items) {
    if (item.key == kEmbedding) item.box.offset[0] -= 1;
  }
  const auto placement = placement_of(rig.scenario(), lives, wrong);
  EXPECT_NE(text_of(placement->saved), right);
  EXPECT_EQ(text_of(placement->loaded), right) << "the load's side is as the layout has it";
  lives[0].ranks[1].audits.clear();
  EXPECT_EQ(text_of(placement_of(rig.scenario(), lives, wrong)->saved), right)
      << "without all records, the save's side is as the layout has it, too";
}

TEST(PlacementOf, a_key_that_no_rank_holds_has_no_placement) {
  Rig rig = rig_of("tp2", "tp2");
  const auto lives = rig.run_all();
  EXPECT_FALSE(placement_of(rig.scenario(), lives, {.life = 1, .key = "no.such.key"}));
}

TEST(PlacementOf, many_boxes_are_counted_and_the_wrong_one_is_listed) {
  Rig rig = rig_of("dp72", "tp1");
  std::vector<LifeRecord> lives(1);  // the records are not needed
  const std::string key = "optimizer.state.exp_avg." + std::string(kEmbedding);
  const auto placement =
      placement_of(rig.scenario(), lives, {.life = 0, .at_save = true, .key = key, .rank = 65});
  ASSERT_TRUE(placement);
  ASSERT_TRUE(placement->saved);
  EXPECT_EQ(placement->saved->boxes.size(), reports::kPlacedBoxesMax);
  EXPECT_EQ(placement->saved->boxes_left_out, 2U) << "66 ranks have two rows or one";
  EXPECT_EQ(placement->saved->boxes.front().ranks, std::vector<std::int32_t>{0});
  EXPECT_EQ(placement->saved->boxes.back().ranks, std::vector<std::int32_t>{65});
}

TEST(PlacementOf, stands_in_the_failure_of_a_scenario) {
  Rig rig = rig_of("tp2 dp2", "tp2");
  sim::Policies policies;
  sim::mutant_named("compute-weights-not-installed").apply(policies);
  const auto result = judge(rig.scenario(), rig.run_all(policies));
  ASSERT_TRUE(result.failure);
  ASSERT_TRUE(result.failure->placement);
  const TensorPlacement& placement = *result.failure->placement;
  ASSERT_TRUE(result.first_difference);
  EXPECT_EQ(placement.key, result.first_difference->key);
  EXPECT_EQ(placement.index, result.first_difference->index);
  EXPECT_EQ(placement.rank, result.first_difference->rank);
  ASSERT_TRUE(placement.saved);
  ASSERT_TRUE(placement.loaded);
  EXPECT_EQ(placement.loaded->layout, "tp2");
}

}  // namespace
}  // namespace reprise::driver
