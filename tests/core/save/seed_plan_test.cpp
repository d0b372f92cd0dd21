// Tests the plan that is derived from a catalog, and the sums by which ranks check that it is
// theirs.

#include "core/save/seed_plan.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace reprise {
namespace {

/// A tensor of three rows, written by ranks 1, 0 and 1, and an object of rank 1. The chunks are not
/// in the order of their boxes.
Catalog three_rows() {
  Catalog catalog{.files = {"__0_0.distcp", "__1_0.distcp"}};
  StoredTensor tensor{.key = "w", .dtype = DType::kFloat32, .shape = {3, 2}};
  tensor.chunks = {{{{2, 0}, {1, 2}}, 1, {}}, {{{0, 0}, {1, 2}}, 1, {}}, {{{1, 0}, {1, 2}}, 0, {}}};
  catalog.tensors = {tensor};
  catalog.objects = {{"rng/shard_0_1", 1, {}}};
  return catalog;
}

TEST(SeedPlan, has_the_boxes_in_order_with_those_who_wrote_them) {
  const auto plan = plan_of(three_rows(), 2);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->tensors.size(), 1U);
  EXPECT_EQ(plan->tensors[0].key, "w");
  EXPECT_EQ(*plan->tensors[0].boxes,
            (std::vector<Box>{{{0, 0}, {1, 2}}, {{1, 0}, {1, 2}}, {{2, 0}, {1, 2}}}));
  EXPECT_EQ(plan->tensors[0].owners, (std::vector<GroupRank>{{1}, {0}, {1}}));
  ASSERT_EQ(plan->objects.size(), 1U);
  EXPECT_EQ(plan->objects[0].owner, GroupRank{1});
  EXPECT_EQ(plan->bytes, (std::vector<std::uint64_t>{8, 16}));
}

TEST(SeedPlan, is_none_if_a_catalog_does_not_say_who_wrote_what) {
  const auto plans = [](const std::function<void(Catalog&)>& change) {
    Catalog catalog = three_rows();
    change(catalog);
    return plan_of(catalog, 2).has_value();
  };
  EXPECT_TRUE(plans([](Catalog&) {}));
  for (const char* name : {"__2_0.distcp", "__-1_0.distcp", "___0.distcp", "__1x_0.distcp",
                           "_1_0.distcp", "__1_1.distcp", "__0.distcp"}) {
    EXPECT_FALSE(plans([&](Catalog& c) { c.files[1] = name; })) << name;
  }
  EXPECT_FALSE(plans([](Catalog& c) { c.tensors[0].chunks.pop_back(); }));
  EXPECT_FALSE(plans([](Catalog& c) { c.tensors[0].chunks[0].file = kNoFile; }));
  EXPECT_FALSE(plans([](Catalog& c) { c.tensors[0].original_shape = {6}; }));
  EXPECT_FALSE(plans([](Catalog& c) { c.tensors[0].chunks.push_back({{{3, 0}, {0, 2}}, 0, {}}); }));
  EXPECT_FALSE(plans([](Catalog& c) { c.objects[0].file = kNoFile; }));
}

/// Returns the states of two ranks that hold the main copies of three_rows().
std::vector<StateDict> holders() {
  std::vector<StateDict> states(2);
  TensorLeaf leaf;
  leaf.key = "w";
  leaf.dtype = DType::kFloat32;
  leaf.shape = {3, 2};
  leaf.pieces = {contiguous_piece({{1, 0}, {1, 2}}), contiguous_piece({{0, 0}, {0, 2}})};
  states[0].tensors = {leaf};
  leaf.pieces = {contiguous_piece({{0, 0}, {1, 2}}), contiguous_piece({{2, 0}, {1, 2}})};
  states[1].tensors = {leaf};
  leaf.replica = 1;
  states[0].tensors.push_back(leaf);
  states[1].objects = {{"rng", {1}, {0}, 0, Value(1)}};
  states[0].objects = {{"rng", {1}, {0}, 1, Value(1)}};
  return states;
}

TEST(SeedPlan, main_copies_of_all_ranks_add_up_to_those_of_the_plan) {
  const std::uint64_t planned = main_copies(*plan_of(three_rows(), 2));
  const auto held = [](const std::function<void(std::vector<StateDict>&)>& change) {
    auto states = holders();
    change(states);
    return main_copies(states[0]) + main_copies(states[1]);
  };
  EXPECT_EQ(held([](auto&) {}), planned);
  EXPECT_NE(held([](auto& s) { s[0].tensors[0].replica = 1; }), planned);
  EXPECT_NE(held([](auto& s) { s[0].tensors[1].replica = 0; }), planned);
  EXPECT_NE(held([](auto& s) { s[0].tensors[0].key = "v"; }), planned);
  EXPECT_NE(held([](auto& s) { s[0].tensors[0].dtype = DType::kInt32; }), planned);
  EXPECT_NE(held([](auto& s) { s[0].tensors[0].shape[1] = 3; }), planned);
  EXPECT_NE(held([](auto& s) { s[0].tensors[0].pieces[0].box.offset[0] = 2; }), planned);
  EXPECT_NE(held([](auto& s) { s[0].tensors[0].pieces[0].box.extent[1] = 1; }), planned);
  EXPECT_NE(held([](auto& s) { s[0].objects[0].replica = 0; }), planned);
  EXPECT_NE(held([](auto& s) { s[1].objects[0].replica = 1; }), planned);
  EXPECT_NE(held([](auto& s) { s[1].objects[0].key = "other"; }), planned);
}

}  // namespace
}  // namespace reprise
