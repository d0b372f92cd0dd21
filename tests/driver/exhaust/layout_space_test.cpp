// Tests the enumeration of layouts against a count that shares no code with it.

#include "driver/exhaust/layout_space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace reprise::driver {
namespace {

using Sizes = std::tuple<int, int, int, int, int, int, int, int>;

/// Tries all combinations of eight sizes; `copies_max` limits the copies of dp.
std::set<Sizes> by_trial(int world_max, int copies_max) {
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
                if (etp * ep * edp != tp * cp * dp) return;
                sizes_to(copies_max, [&](int copies) {
                  if (dp % copies != 0) return;
                  found.insert({tp, cp, dp, pp, etp, ep, edp, copies});
                });
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
  return {layout.tp,  layout.cp, layout.dp,          layout.pp,
          layout.etp, layout.ep, layout.expert_dp(), layout.dp_replicate};
}

TEST(LayoutSpace, has_every_layout_once) {
  for (const int world : {1, 2, 3, 4, 6, 8, 12}) {
    const auto layouts = layouts_up_to(world);
    std::set<Sizes> listed;
    for (const auto& layout : layouts) listed.insert(sizes_of(layout));
    EXPECT_EQ(listed, by_trial(world, 1)) << world;
    EXPECT_EQ(layouts.size(), listed.size()) << world << ": a layout is listed twice";
  }
}

TEST(LayoutSpace, has_every_cut_of_dp_into_copies_and_shards_once) {
  for (const int world : {1, 2, 3, 4, 6, 8}) {
    const auto layouts = layouts_up_to(world, DpCuts::kCopiesAndShards);
    std::set<Sizes> listed;
    for (const auto& layout : layouts) listed.insert(sizes_of(layout));
    EXPECT_EQ(listed, by_trial(world, world)) << world;
    EXPECT_EQ(layouts.size(), listed.size()) << world << ": a layout is listed twice";
  }
}

TEST(LayoutSpace, has_568_layouts_of_up_to_eight_ranks_if_dp_is_cut) {
  const auto layouts = layouts_up_to(8, DpCuts::kCopiesAndShards);
  EXPECT_EQ(layouts.size(), 568U);
  EXPECT_EQ(layouts.size() * layouts.size(), 322'624U);
  const auto megatron_refuses = std::count_if(
      layouts.begin(), layouts.end(),
      [](const auto& layout) { return layout.expert_dp() % layout.dp_replicate != 0; });
  EXPECT_EQ(megatron_refuses, 142);  // docs/search.md names the number
}

TEST(LayoutSpace, has_333_layouts_of_up_to_eight_ranks) {
  EXPECT_EQ(layouts_up_to(8).size(), 333U);
  EXPECT_EQ(layouts_up_to(8).size() * layouts_up_to(8).size(), 110'889U);
}

TEST(LayoutSpace, has_only_layouts_that_a_job_accepts_small_worlds_first) {
  for (const auto cuts : {DpCuts::kShards, DpCuts::kCopiesAndShards}) {
    std::int32_t world = 0;
    for (const auto& layout : layouts_up_to(8, cuts)) {
      EXPECT_NO_THROW(check(layout)) << layout;
      EXPECT_GE(layout.world_size(), world) << layout << " comes after a larger world";
      world = layout.world_size();
    }
  }
}

}  // namespace
}  // namespace reprise::driver
