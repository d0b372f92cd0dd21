// Tests the enumeration of layouts against a count that shares no code with it.

#include "driver/exhaust/layout_space.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace reprise::driver {
namespace {

using Sizes = std::tuple<int, int, int, int, int, int, int>;

/// Tries all combinations of seven sizes.
std::set<Sizes> by_trial(int world_max) {
  std::set<Sizes> found;
  const auto sizes_to = [](int most, const auto& visit) {
    for (int size = 1; size <= most; ++size) visit(size);
  };
  sizes_to(world_max, [&](int tp) {
    sizes_to(world_max / tp, [&](int cp) {
      sizes_to(world_max / (tp * cp), [&](int dp) {
        sizes_to(world_max / (tp * cp * dp), [&](int pp) {
          sizes_to(world_max, [&](int etp) {
            sizes_to(world_max, [&](int ep) {
              sizes_to(world_max, [&](int edp) {
                if (etp * ep * edp == tp * cp * dp) found.insert({tp, cp, dp, pp, etp, ep, edp});
              });
            });
          });
        });
      });
    });
  });
  return found;
}

Sizes sizes_of(const sim::Layout& layout) {
  return {layout.tp, layout.cp, layout.dp, layout.pp, layout.etp, layout.ep, layout.expert_dp()};
}

TEST(LayoutSpace, has_every_layout_once) {
  for (const int world : {1, 2, 3, 4, 6, 8, 12}) {
    const auto layouts = layouts_up_to(world);
    std::set<Sizes> listed;
    for (const auto& layout : layouts) listed.insert(sizes_of(layout));
    EXPECT_EQ(listed, by_trial(world)) << world;
    EXPECT_EQ(layouts.size(), listed.size()) << world << ": a layout is listed twice";
  }
}

TEST(LayoutSpace, has_333_layouts_of_up_to_eight_ranks) {
  EXPECT_EQ(layouts_up_to(8).size(), 333U);
  EXPECT_EQ(layouts_up_to(8).size() * layouts_up_to(8).size(), 110'889U);
}

TEST(LayoutSpace, has_only_layouts_that_a_job_accepts_small_worlds_first) {
  std::int32_t world = 0;
  for (const auto& layout : layouts_up_to(8)) {
    EXPECT_NO_THROW(check(layout)) << layout;
    EXPECT_GE(layout.world_size(), world) << layout << " comes after a larger world";
    world = layout.world_size();
  }
}

}  // namespace
}  // namespace reprise::driver
