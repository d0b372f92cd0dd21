// Tests every size in the list of layout names: it is parsed, printed, used to assign ranks, stored
// and shown. Each size must split the model and its random streams as stated in that size's row of
// the list. When an axis is added, this file needs no change.

#include "core/megatron/layout_sizes.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/megatron/modules.hpp"
#include "sim/job/data/policy.hpp"
#include "sim/job/groups/groups.hpp"
#include "sim/job/groups/layout.hpp"
#include "sim/job/modules/megatron_common.hpp"
#include "sim/job/optimizer/family.hpp"

namespace reprise::sim {
namespace {

/// Converts to any type. Used to count the members of an aggregate.
struct Anything {
  template <class T>
  operator T() const;
};
template <class Aggregate, class... Members>
consteval std::size_t member_count() {
  if constexpr (requires { Aggregate{Members{}..., Anything{}}; }) {
    return member_count<Aggregate, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}
static_assert(member_count<Layout>() == kLayoutFields.size() + 2,
              "each member of Layout has a row, except order and stage_layers");

/// Returns a layout in which the size called `name` is 4. The sizes dp and pp also exceed 1,
/// because some rows of the list require it. All other sizes are 1.
Layout layout_with(std::string_view name) {
  Layout layout;
  layout.dp = 4;  // must be divisible by etp, ep and dp_replicate
  layout.pp = 2;  // vpp needs more than one stage
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
  EXPECT_EQ(Layout{}.order, "tp-cp-ep-dp-pp");  // is Megatron's default
  bool further = false;
  for (const auto& size : kLayoutSizes) {
    EXPECT_FALSE(further && size.ordered) << size.name;
    further = !size.ordered;
  }
}

Layout base() {
  Layout layout;
  layout.dp = 4;
  layout.pp = 2;
  return layout;
}
/// Returns the base layout, but with another size for the given field.
Layout base_but(const LayoutField& field) {
  Layout layout = base();
  layout.*field.size = layout.*field.size > 1 ? 1 : 2;
  check(layout);
  return layout;
}

/// Returns the different parts of the model that the ranks of the layout have. A part lists keys
/// and boxes.
std::set<std::string> parts_held(const Layout& layout) {
  const ModelSpec model = model_named("moe-tiny");
  std::set<std::string> parts;
  for (const MeshKind kind : kinds_of(model)) {
    for (std::int32_t rank = 0; rank < layout.world_size(); ++rank) {
      std::string part;
      for (const auto& parameter : family_of(kind, model, layout, {rank}, ceil_chunk).parameters) {
        part += parameter.spec.key;
        for (const Piece& piece : parameter.pieces) part += " " + testing::PrintToString(piece.box);
      }
      parts.insert(part);
    }
  }
  return parts;
}

TEST(LayoutSizes, each_cuts_the_model_or_leaves_its_parts_as_its_row_says) {
  for (const auto& field : kLayoutFields) {
    const Layout other = base_but(field);
    EXPECT_EQ(same_parts(base(), other), parts_held(base()) == parts_held(other)) << other;
  }
}

/// The grids of random streams in a save, and how many copies of each dense random stream there
/// are.
struct StoredStreams {
  std::vector<std::int32_t> dense;
  std::vector<std::int32_t> experts;
  std::int32_t copies = 0;

  explicit StoredStreams(const Layout& layout) {
    const CheckpointGroups groups = groups_of(dense_mesh(layout), expert_mesh(layout), {0});
    const std::vector<HostRng> streams(1);
    const ContentMetadata metadata{.dp_cp_group = groups.dp_cp};
    const auto leaves = random_leaves({streams, streams.data(), groups, metadata, {0}});
    for (const auto size : leaves.at(0).grid) dense.push_back(static_cast<std::int32_t>(size));
    for (const auto size : leaves.at(1).grid) experts.push_back(static_cast<std::int32_t>(size));
    copies = groups.dp_cp->size();
  }
};

TEST(LayoutSizes, each_arranges_random_streams_or_not_as_its_row_says) {
  const StoredStreams streams(base());
  for (const auto& field : kLayoutFields) {
    const Layout other = base_but(field);
    const StoredStreams others(other);
    const bool same_grid = streams.dense == others.dense;
    EXPECT_EQ(same_dense_streams(base(), other, false), same_grid) << other;
    EXPECT_EQ(same_dense_streams(base(), other, true), same_grid && streams.copies == others.copies)
        << other;
    EXPECT_EQ(same_expert_streams(base(), other), streams.experts == others.experts) << other;
  }
}

}  // namespace
}  // namespace reprise::sim
