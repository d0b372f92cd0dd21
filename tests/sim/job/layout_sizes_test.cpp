// Every size in the single list of layout names is parsed, printed, assigned ranks, stored and
// shown. A new axis needs no line here.

#include "core/state/layout_sizes.hpp"

#include <gtest/gtest.h>

#include "core/state/modules.hpp"
#include "sim/job/groups.hpp"
#include "sim/job/layout.hpp"
#include "sim/job/megatron_common.hpp"

namespace reprise::sim {
namespace {

/// Returns a layout in which that size is 4, and other sizes are only as large as it needs.
Layout layout_with(std::string_view name) {
  Layout layout;
  layout.dp = 4;  // etp, ep and dp_replicate divide it
  layout.pp = 2;  // vpp needs it
  layout.set_size(name, 4);
  return layout;
}

TEST(LayoutSizes, each_is_printed_and_read_by_its_name) {
  for (const auto& size : kLayoutSizes) {
    const Layout layout = layout_with(size.name);
    const std::string text = to_string(layout);
    EXPECT_NE((" " + text).find(" " + std::string(size.name) + "4"), std::string::npos) << text;
    EXPECT_EQ(parse_layout(text), layout) << text;
  }
}

TEST(LayoutSizes, each_axis_is_dealt_its_ranks) {
  for (const auto& field : kLayoutFields) {
    const Layout layout = layout_with(field.name);
    const bool own = field.takes_ranks();
    const Mesh mesh = dense_mesh(layout);
    EXPECT_EQ(mesh.size(), layout.world_size()) << layout;
    EXPECT_EQ(expert_mesh(layout).size(), layout.world_size()) << layout;
    const bool alone = field.name != "dp" && field.name != "pp";
    EXPECT_EQ(layout.world_size(), own && alone ? 32 : field.name == "pp" ? 16 : 8) << layout;
    if (own && field.name != "dp") {
      EXPECT_EQ(mesh.axis_size(field.name), 4) << layout;
    }
  }
}

TEST(LayoutSizes, each_rank_finds_its_place_by_its_groups) {
  for (const auto& field : kLayoutFields) {
    const Layout layout = layout_with(field.name);
    const Mesh dense = dense_mesh(layout);
    const Mesh experts = expert_mesh(layout);
    for (std::int32_t r = 0; r < layout.world_size(); ++r) {
      const CheckpointGroups groups = groups_of(dense, experts, {r});
      EXPECT_EQ(place_in(dense, groups, {r}), GroupRank{r}) << layout;
      EXPECT_EQ(place_in(experts, groups, {r}), GroupRank{r}) << layout;
    }
  }
}

TEST(LayoutSizes, each_is_stored_under_megatron_s_argument_and_read_again) {
  for (const auto& size : kLayoutSizes) {
    CommonState state;
    state.modules.push_back({.model = "gpt-tiny", .layout = layout_with(size.name)});
    const Value common = encode(state, stripped);
    const Value* argument = common.find("args")->find(std::string(size.argument));
    ASSERT_NE(argument, nullptr) << size.argument;
    EXPECT_EQ(*argument, Value(std::int64_t{4})) << size.argument;
    EXPECT_EQ(decode_common(common).modules.front().layout, layout_with(size.name)) << size.name;
  }
}

TEST(LayoutSizes, axes_of_an_order_come_first_and_make_the_default_order) {
  EXPECT_EQ(Layout{}.order, "tp-cp-ep-dp-pp");  // Megatron's default
  bool further = false;
  for (const auto& size : kLayoutSizes) {
    EXPECT_FALSE(further && size.ordered) << size.name;
    further = !size.ordered;
  }
}

}  // namespace
}  // namespace reprise::sim
