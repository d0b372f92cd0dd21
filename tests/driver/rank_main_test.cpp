// Tests what the ranks of a simulated job detect about their own state, such as wrong weights and
// copies that differ.

#include "driver/lanes/rank_main.hpp"

#include <gtest/gtest.h>

#include "driver/judges/holders.hpp"
#include "driver/judges/life_judge.hpp"
#include "driver/record/job_config.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;
using test::Rig;
using test::scenario_of;

reports::ScenarioResult result_of(Rig& rig, const sim::Policies& policies = {}) {
  return judge(rig.scenario(), rig.run_all(policies));
}

TEST(RankMain, two_cycles_in_one_process_and_a_third_in_the_next) {
  Rig rig(scenario_of({
      {"tp2 dp2",
       {TrainAction{2}, SaveAction{}, TrainAction{2}, LoadAction{}, TrainAction{1}, SaveAction{},
        TrainAction{2}, LoadAction{}, TrainAction{2}, SaveAction{}}},
      {"tp4", {TrainAction{2}}},
  }));
  const auto result = result_of(rig);
  EXPECT_EQ(result.verdict, Verdict::kPass) << result.code << ' ' << result.reason;
  std::vector<std::int64_t> steps;
  for (const auto& point : result.trajectory) steps.push_back(point.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 3, 4, 5, 4, 5, 6, 7}));
}

TEST(RankMain, the_first_life_is_compared_with_the_uninterrupted_job) {
  Rig rig(scenario_of({{"tp2 dp2", {TrainAction{2}}}}));
  const auto lives = rig.run_all();
  for (const auto& rank : lives[0].ranks) {
    EXPECT_GT(rank.result.elements, 5000U);
    EXPECT_TRUE(rank.findings.empty());
    EXPECT_TRUE(rank.result.owns);
  }
}

TEST(RankMain, two_main_copies_are_found_although_the_save_is_refused) {
  Rig rig(scenario_of({{"tp2 dp2", {TrainAction{1}, SaveAction{}}}}));
  sim::Policies policies;
  sim::mutant_named("replica-zero-axis/dp").apply(policies);
  const auto lives = rig.run_all(policies);
  EXPECT_EQ(lives[0].ranks[0].ending, Ending::kFailed);
  const Findings findings = judge_life(lives[0]);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].code, Code::kMultiWriter);
  EXPECT_NE(findings[0].text.find("rank 0 and rank 2 both hold the main copy"), std::string::npos)
      << findings[0];
}

TEST(RankMain, a_commit_step_out_of_order_is_found_without_a_crash__dp2) {
  Rig rig(scenario_of({{"dp2", {TrainAction{1}, SaveAction{}}}}));
  sim::Policies policies;
  sim::mutant_named("tracker-before-payload").apply(policies);
  const auto lives = rig.run_all(policies);
  const auto& findings = lives[0].ranks[0].findings;
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.back().code, judged::kProtocol);
  EXPECT_NE(findings.back().text.find("'+commit/tracker' is not allowed"), std::string::npos)
      << findings.back().text;
  EXPECT_TRUE(lives[0].ranks[1].findings.empty()) << "only the leader runs the commit";
}

/// Changes one byte of one copy, so that the copies passed to the save differ.
StateDict with_a_false_replica(StateDict state) {
  static const std::byte kWrong{0x5a};
  for (auto& leaf : state.tensors) {
    if (leaf.replica > 0 && !leaf.pieces.empty()) {
      leaf.data[0] ^= kWrong;
      break;
    }
  }
  return state;
}

TEST(RankMain, differing_copies_are_found_although_the_save_keeps_one) {
  Rig rig(scenario_of({{"tp2 dp2", {TrainAction{1}, SaveAction{}}}}));
  sim::Policies policies;
  policies.job.saved = with_a_false_replica;
  const auto lives = rig.run_all(policies);
  EXPECT_EQ(lives[0].ranks[0].ending, Ending::kReturned);
  const auto result = judge(rig.scenario(), lives);
  EXPECT_EQ(result.code, "FALSE_REPLICA") << result.reason;
}

TEST(RankMain, weights_not_refreshed_are_stale_copies_of_their_masters) {
  Rig rig(scenario_of({{"tp2 dp2", {TrainAction{1}, SaveAction{}}}, {"tp2 dp2", {}}}));
  sim::Policies policies;
  sim::mutant_named("compute-weights-not-installed").apply(policies);
  const auto result = result_of(rig, policies);
  EXPECT_EQ(result.code, "STALE_DERIVED") << result.reason;
  EXPECT_NE(result.reason.find("before the load, which left it as it was"), std::string::npos)
      << result.reason;
}

/// Overwrites elements of rank 0 with elements that belonged to another rank when the checkpoint
/// was saved.
TEST(RankMain, a_wrong_element_names_the_rank_that_held_it_at_the_save) {
  Rig rig(scenario_of({{"tp2 dp2", {TrainAction{1}, SaveAction{}}}, {"tp3", {}}}));
  const std::string key = "optimizer.state.exp_avg.decoder.layers.0.mlp.linear_fc1.weight";
  std::vector<std::byte> of_rank_2;
  Interference swap;  // used in two loads, since rank 0 may run before rank 2 in the first
  swap.state = [&](GlobalRank rank, StateDict& loaded) {
    for (auto& leaf : loaded.tensors) {
      if (leaf.key != key) continue;
      const std::size_t bytes = 13 * 24 * sizeof(float);
      if (rank == GlobalRank{2}) of_rank_2.assign(leaf.data, leaf.data + bytes);
      if (rank == GlobalRank{0} && !of_rank_2.empty()) {
        std::copy(of_rank_2.begin(), of_rank_2.end(), leaf.data);
      }
    }
  };
  auto first_life = rig.run(0);
  rig.end(0, first_life);
  rig.run(1, {}, swap);
  const auto life = rig.run(1, {}, swap);
  ASSERT_TRUE(life.ranks[0].first_difference);
  const auto& first = *life.ranks[0].first_difference;
  EXPECT_EQ(first.key, key);
  // Under tp3, rank 2 has rows 36..54. Under tp2 dp2, row 36 belonged to rank 1 (tp 1, dp 0).
  EXPECT_NE(first.comes_from.find("[36, 0], which is rank 1's"), std::string::npos)
      << first.comes_from;
}

TEST(Holders, follow_the_layout_with_main_copies_first__tp2_dp2) {
  const Scenario scenario = scenario_of({{"tp2 dp2 order=dp-tp", {}}});
  const Holders holders = holders_of(config_of(scenario, 0));
  const auto& master =
      holders.at("optimizer.state.fp32_param.decoder.layers.0.mlp.linear_fc1.weight");
  ASSERT_EQ(master.size(), 4U);
  EXPECT_EQ(to_string(master[0].box), "[0:14, 0:24]");
  EXPECT_EQ(master[0].rank, GlobalRank{0});
  const auto& weight = holders.at("decoder.layers.0.mlp.linear_fc1.weight");
  ASSERT_EQ(weight.size(), 4U);
  std::vector<std::int32_t> ranks;
  for (const Holder& holder : weight) ranks.push_back(holder.rank.value);
  EXPECT_EQ(ranks, (std::vector<std::int32_t>{0, 2, 1, 3}));
  EXPECT_EQ(weight[0].box, weight[2].box);
}

}  // namespace
}  // namespace reprise::driver
