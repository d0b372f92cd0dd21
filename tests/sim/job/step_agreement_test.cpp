// Tests that all ranks of a world agree on the statistics of a step, however the modules are
// distributed over the ranks.

#include "sim/job/data/step_agreement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/world/sim_store.hpp"
#include "sim/world/world.hpp"

namespace reprise::sim {
namespace {

constexpr std::int64_t kUnit = 1 << 20;

/// The ranks of a module, and the values that each rank contributes to the agreement.
struct TestModule {
  std::vector<GlobalRank> ranks;
  bool overflow = false;
  double loss_scale = 1;
  std::vector<std::int64_t> squares;  ///< one for each rank of the module
  std::vector<std::int64_t> zeros;
};

/// Runs the agreement on every rank of a world. A deadlock makes the test fail.
std::vector<StepAgreement> agreed(std::int32_t world_size, const std::vector<TestModule>& modules) {
  std::vector<StepAgreement> all(static_cast<std::size_t>(world_size));
  SimStore store;
  World world({.world_size = world_size}, store);
  const RunResult result = world.run([&](Ports& ports, GlobalRank rank) {
    std::vector<ModuleStep> own;
    std::vector<std::shared_ptr<Communicator>> groups;
    for (const auto& module : modules) {
      ModuleStep& step = own.emplace_back();
      const Group group(module.ranks);
      const auto at = group.rank_of(rank);
      if (!at) continue;
      groups.push_back(ports.fabric.communicator(group));
      step = {.group = groups.back().get(),
              .overflow = module.overflow,
              .loss_scale = module.loss_scale,
              .squares = module.squares[static_cast<std::size_t>(at->value)],
              .zeros = module.zeros[static_cast<std::size_t>(at->value)]};
    }
    const auto everyone = ports.fabric.communicator(Group::world(world_size));
    all[static_cast<std::size_t>(rank.value)] = agree_on_step(*everyone, own);
  });
  EXPECT_FALSE(result.deadlock.has_value()) << result.deadlock->what();
  for (const auto& rank : result.ranks) EXPECT_EQ(rank.end, RankEnd::kReturned) << rank.message;
  return all;
}

/// Returns module a on ranks 0 1, b on 2 3 4, c on 5.
std::vector<TestModule> side_by_side_modules() {
  return {{{{0}, {1}}, false, 16, {3 * kUnit, 4 * kUnit}, {1, 2}},
          {{{4}, {2}, {3}}, false, 64, {5 * kUnit, 0, kUnit}, {0, 7, 3}},
          {{{5}}, false, 32, {12 * kUnit}, {100}}};
}

/// Returns the modules a, b and c, with the same values as before, but with each module on all of
/// ranks 0 1 2.
std::vector<TestModule> colocated_modules() {
  const std::vector<GlobalRank> ranks = {{0}, {1}, {2}};
  return {{ranks, false, 16, {3 * kUnit, 0, 4 * kUnit}, {1, 2, 0}},
          {ranks, false, 64, {5 * kUnit, 0, kUnit}, {0, 7, 3}},
          {ranks, false, 32, {0, 12 * kUnit, 0}, {60, 0, 40}}};
}

TEST(StepAgreement, statistics_are_summed_per_module_and_known_to_all_ranks) {
  struct Row {
    std::int32_t world;
    std::vector<TestModule> modules;
  };
  for (const Row& row : {Row{6, side_by_side_modules()}, Row{3, colocated_modules()}}) {
    for (const auto& step : agreed(row.world, row.modules)) {
      ASSERT_EQ(step.modules.size(), 3U);
      EXPECT_FALSE(step.overflow);
      EXPECT_EQ(step.modules[0].squares, 7 * kUnit);
      EXPECT_EQ(step.modules[1].squares, 6 * kUnit);
      EXPECT_EQ(step.modules[2].squares, 12 * kUnit);
      EXPECT_EQ(step.modules[0].zeros, 3);
      EXPECT_EQ(step.modules[1].zeros, 10);
      EXPECT_EQ(step.modules[2].zeros, 100);
      EXPECT_EQ(step.modules[1].loss_scale, 64);
      EXPECT_EQ(step.gradient_norm(), 5) << "the root of 7 + 6 + 12";
      EXPECT_EQ(step.zeros(), 113);
    }
  }
}

TEST(StepAgreement, found_inf_of_any_module_stops_all_and_is_told_of_it_alone) {
  for (unsigned which = 1; which < 8; ++which) {
    for (const std::int32_t world : {6, 3}) {
      auto modules = world == 6 ? side_by_side_modules() : colocated_modules();
      for (std::size_t m = 0; m < 3; ++m) modules[m].overflow = (which >> m & 1U) != 0;
      for (const auto& step : agreed(world, modules)) {
        EXPECT_TRUE(step.overflow);
        ASSERT_EQ(step.modules.size(), 3U);
        for (std::size_t m = 0; m < 3; ++m) {
          EXPECT_EQ(step.modules[m].overflow, modules[m].overflow);
          EXPECT_EQ(step.modules[m].loss_scale, modules[m].loss_scale);
        }
        EXPECT_EQ(step.gradient_norm(), 0) << "unused gradients must not count";
        EXPECT_EQ(step.zeros(), 0);
      }
    }
  }
}

TEST(StepAgreement, found_inf_on_one_rank_of_a_module_is_enough) {
  for (std::int32_t odd = 0; odd < 6; ++odd) {
    SimStore store;
    World world({.world_size = 6}, store);
    std::vector<StepAgreement> all(6);
    const std::vector<Group> groups = {Group({{0}, {1}}), Group({{2}, {3}, {4}}),
                                       Group({GlobalRank{5}})};
    const RunResult result = world.run([&](Ports& ports, GlobalRank rank) {
      std::vector<ModuleStep> own(3);
      std::shared_ptr<Communicator> group;
      for (std::size_t m = 0; m < 3; ++m) {
        if (!groups[m].rank_of(rank)) continue;
        group = ports.fabric.communicator(groups[m]);
        own[m] = {.group = group.get(), .overflow = rank.value == odd, .loss_scale = 2};
      }
      const auto everyone = ports.fabric.communicator(Group::world(6));
      all[static_cast<std::size_t>(rank.value)] = agree_on_step(*everyone, own);
    });
    EXPECT_FALSE(result.deadlock.has_value());
    for (const auto& step : all) {
      EXPECT_TRUE(step.overflow) << odd;
      ASSERT_EQ(step.modules.size(), 3U);
      for (std::size_t m = 0; m < 3; ++m) {
        EXPECT_EQ(step.modules[m].overflow, groups[m].rank_of(GlobalRank{odd}).has_value());
      }
    }
  }
}

TEST(StepAgreement, a_rank_without_modules_takes_part_and_learns_the_same) {
  const auto all = agreed(8, side_by_side_modules());  // ranks 6 and 7 have no module
  for (const auto& step : all) {
    EXPECT_EQ(step.gradient_norm(), 5);
    EXPECT_EQ(step.zeros(), 113);
    ASSERT_EQ(step.modules.size(), 3U);
    EXPECT_EQ(step.modules[2].loss_scale, 32);
  }
}

TEST(StepAgreement, the_order_of_modules_changes_no_bit_of_the_norm) {
  std::vector<TestModule> modules = side_by_side_modules();
  modules[0].squares = {1, (std::int64_t{1} << 52) + 1};
  modules[1].squares = {3, 7, 11};
  modules[2].squares = {(std::int64_t{1} << 51) + 5};
  std::vector<std::size_t> order = {0, 1, 2};
  const double norm = agreed(6, modules).front().gradient_norm();
  do {
    std::vector<TestModule> permuted;
    for (const auto m : order) permuted.push_back(modules[m]);
    for (const auto& step : agreed(6, permuted)) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(step.gradient_norm()),
                std::bit_cast<std::uint64_t>(norm));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(StepAgreement, the_norm_is_the_root_of_the_sum_and_not_a_sum_of_roots) {
  StepAgreement step;
  step.modules.resize(2);
  step.modules[0].squares = 9 * kUnit;
  step.modules[1].squares = 16 * kUnit;
  EXPECT_EQ(step.gradient_norm(), 5);
  step.modules.resize(1);
  EXPECT_EQ(step.gradient_norm(), 3) << "one model";
}

TEST(StepAgreement, loss_scales_come_through_as_they_are) {
  for (const double scale : {0.0, 1.0, 0.1, 65536.0, 4294967296.0, 1e-300}) {
    auto modules = side_by_side_modules();
    modules[1].loss_scale = scale;
    for (const auto& step : agreed(6, modules)) {
      ASSERT_EQ(step.modules.size(), 3U);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(step.modules[1].loss_scale),
                std::bit_cast<std::uint64_t>(scale));
    }
  }
}

TEST(StepAgreement, all_have_stepped_only_if_each_of_4_has) {
  for (unsigned which = 0; which < 16; ++which) {
    SimStore store;
    World world({.world_size = 4}, store);
    std::vector<int> all(4);
    world.run([&](Ports& ports, GlobalRank rank) {
      const auto everyone = ports.fabric.communicator(Group::world(4));
      const bool own = (which >> static_cast<unsigned>(rank.value) & 1U) != 0;
      all[static_cast<std::size_t>(rank.value)] = all_have_stepped(*everyone, own) ? 1 : 0;
    });
    EXPECT_EQ(all, std::vector<int>(4, which == 15 ? 1 : 0)) << which;
  }
}

}  // namespace
}  // namespace reprise::sim
