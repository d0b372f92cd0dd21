// Tests which fiber is chosen, uniformly and by priority, before and after a split.

#include "sim/fibers/fiber_chooser.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

namespace reprise::sim {
namespace {

/// Runs `fibers` fibers of `steps` steps each. Returns the order in which they were chosen.
std::vector<std::size_t> course(const SchedulePlan& plan, std::uint64_t seed, std::size_t fibers,
                                std::size_t steps) {
  FiberChooser chooser(Stream(seed).split("schedule"), plan);
  std::vector<std::size_t> runnable(fibers);
  std::iota(runnable.begin(), runnable.end(), 0);
  std::vector<std::size_t> left(fibers, steps);
  std::vector<std::size_t> order;
  while (!runnable.empty()) {
    const std::size_t place = chooser.choose(runnable);
    const std::size_t fiber = runnable.at(place);
    order.push_back(fiber);
    if (--left[fiber] == 0) runnable.erase(runnable.begin() + static_cast<std::ptrdiff_t>(place));
  }
  EXPECT_EQ(chooser.decisions(), order.size());
  return order;
}

std::size_t changes_in(const std::vector<std::size_t>& order) {
  std::size_t changes = 0;
  for (std::size_t i = 1; i < order.size(); ++i) changes += order[i] != order[i - 1] ? 1 : 0;
  return changes;
}

TEST(FiberChooser, without_a_plan_chooses_as_the_stream_says) {
  Stream choices = Stream(3).split("schedule");
  FiberChooser chooser(choices, {});
  const std::vector<std::size_t> runnable = {4, 7, 9};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(chooser.choose(runnable), choices.below(3));
}

TEST(FiberChooser, a_split_keeps_the_course_before_it_and_changes_the_rest) {
  for (const auto choosing : {Choosing::kUniform, Choosing::kPriority}) {
    SchedulePlan plan{.choosing = choosing};
    const auto whole = course(plan, 1, 4, 50);
    plan.splits = {{.at = 60, .seed = 9, .choosing = Choosing::kUniform}};
    const auto split = course(plan, 1, 4, 50);
    EXPECT_TRUE(std::equal(whole.begin(), whole.begin() + 60, split.begin()));
    EXPECT_NE(whole, split);
    EXPECT_EQ(split, course(plan, 1, 4, 50)) << "must be the same every time";
    plan.splits.front().seed = 10;
    EXPECT_NE(split, course(plan, 1, 4, 50));
  }
}

TEST(FiberChooser, by_priority_one_fiber_runs_until_a_priority_falls) {
  const SchedulePlan plan{.choosing = Choosing::kPriority, .horizon = 200};
  std::set<std::vector<std::size_t>> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto order = course(plan, seed, 4, 50);
    EXPECT_LE(changes_in(order), 3 + 2 * (plan.depth - 1)) << seed;
    seen.insert(order);
  }
  EXPECT_GT(seen.size(), 30U);
}

TEST(FiberChooser, by_priority_finds_an_order_as_often_as_its_bound_says) {
  // Fiber 1 must run between steps 30 and 31 of fiber 0, which uniform choices of equally long
  // fibers rarely leave for so late.
  const auto meets = [](const std::vector<std::size_t>& order) {
    std::size_t zeros = 0;
    for (const auto fiber : order) {
      if (fiber == 1) return zeros == 30;
      ++zeros;
    }
    return false;
  };
  std::size_t by_priority = 0;
  std::size_t uniform = 0;
  constexpr std::uint64_t kRuns = 3000;
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    by_priority +=
        meets(course({.choosing = Choosing::kPriority, .depth = 2, .horizon = 80}, seed, 2, 40))
            ? 1
            : 0;
    uniform += meets(course({}, seed, 2, 40)) ? 1 : 0;
  }
  EXPECT_GE(by_priority, kRuns / (2 * 80) / 2) << "the bound is 1 / (n * k), here 1 / 160";
  EXPECT_LT(uniform, by_priority / 4);
}

TEST(FiberChooser, by_priority_a_polling_fiber_does_not_starve_the_others) {
  FiberChooser chooser(Stream(1), {.choosing = Choosing::kPriority});
  const std::vector<std::size_t> runnable = {0, 1};
  std::set<std::size_t> ran;
  for (int i = 0; i < 5000; ++i) ran.insert(chooser.choose(runnable));
  EXPECT_EQ(ran.size(), 2U);
}

}  // namespace
}  // namespace reprise::sim
