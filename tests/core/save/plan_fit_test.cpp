// Tests whether a plan fits a state: its items, and who writes them.

#include "core/save/plan_fit.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace reprise {
namespace {

using Keys = std::vector<std::string>;

PlannedTensor rows_of(const std::string& key, std::vector<GroupRank> owners) {
  PlannedTensor tensor{key, DType::kFloat32, {2, 3}, {}, std::move(owners)};
  tensor.boxes = std::make_shared<const std::vector<Box>>(
      std::vector<Box>{{{0, 0}, {1, 3}}, {{1, 0}, {1, 3}}});
  return tensor;
}

/// Rank 0 writes the first row of "b", rank 1 the second one, the whole of "d" and the object.
GlobalPlan plan_of_two() {
  GlobalPlan plan;
  plan.tensors = {rows_of("b", {{0}, {1}}), rows_of("d", {{1}, {1}})};
  plan.objects = {{"o/shard_0_1", {1}}};
  plan.signature = 5;
  return plan;
}

TensorLeaf leaf_with(const std::string& key, const std::vector<Box>& boxes) {
  TensorLeaf leaf;
  leaf.key = key;
  leaf.dtype = DType::kFloat32;
  leaf.shape = {2, 3};
  for (const Box& box : boxes) leaf.pieces.push_back(contiguous_piece(box));
  return leaf;
}

/// Rank 1 also holds a spare copy of the first row of "b", and an empty piece.
StateDict state_of_rank_1() {
  StateDict state;
  state.tensors = {leaf_with("b", {{{0, 0}, {1, 3}}, {{1, 0}, {1, 3}}, {{2, 0}, {0, 3}}}),
                   leaf_with("d", {{{0, 0}, {1, 3}}, {{1, 0}, {1, 3}}})};
  state.objects = {{"o", {1}, {0}, 0, Value(1)}};
  return state;
}

TEST(PlanFit, keys_without_a_place_in_the_plan_are_named) {
  const auto unplanned = [](const std::function<void(StateDict&)>& change) {
    StateDict state = state_of_rank_1();
    change(state);
    return unplanned_keys(plan_of_two(), state);
  };
  EXPECT_EQ(unplanned([](StateDict&) {}), Keys{});
  for (const char* key : {"a", "c", "e"}) {
    EXPECT_EQ(unplanned([&](StateDict& s) { s.tensors[0].key = key; }), Keys{key});
  }
  EXPECT_EQ(unplanned([](StateDict& s) { s.tensors[1].dtype = DType::kInt32; }), Keys{"d"});
  EXPECT_EQ(unplanned([](StateDict& s) { s.tensors[1].shape[1] = 4; }), Keys{"d"});
  EXPECT_EQ(unplanned([](StateDict& s) { s.tensors[1].pieces[0].box.extent[1] = 2; }), Keys{"d"});
  EXPECT_EQ(unplanned([](StateDict& s) { s.tensors[1].pieces[1].box.offset[0] = 2; }), Keys{"d"});
  EXPECT_EQ(unplanned([](StateDict& s) { s.objects[0].key = "p"; }), Keys{"p/shard_0_1"});
}

TEST(PlanFit, a_rank_is_served_if_it_holds_all_that_it_writes_and_main_copies_are_its_own) {
  const auto served = [](const std::function<void(StateDict&)>& change, std::int32_t self = 1) {
    StateDict state = state_of_rank_1();
    change(state);
    return serves(plan_of_two(), state, {self});
  };
  EXPECT_TRUE(served([](StateDict&) {}));
  EXPECT_FALSE(served([](StateDict&) {}, 0)) << "the object is of rank 1";
  EXPECT_TRUE(served([](StateDict& s) { s.objects[0].replica = 1; }, 0));
  EXPECT_FALSE(served([](StateDict& s) { s.objects[0].replica = 1; }));
  EXPECT_FALSE(served([](StateDict& s) { s.objects.clear(); }));
  EXPECT_FALSE(served([](StateDict& s) { s.tensors.pop_back(); }));
  EXPECT_FALSE(served([](StateDict& s) { s.tensors[1].pieces.pop_back(); }));
  EXPECT_TRUE(served([](StateDict& s) { s.tensors[0].pieces.erase(s.tensors[0].pieces.begin()); }));
  EXPECT_FALSE(served([](StateDict& s) { s.tensors[0].key = "a"; }));
}

TEST(PlanFit, plans_are_the_same_if_everything_in_them_is) {
  const auto same = [](const std::function<void(GlobalPlan&)>& change) {
    GlobalPlan other = plan_of_two();
    change(other);
    return same_plan(plan_of_two(), other) && same_plan(other, plan_of_two());
  };
  EXPECT_TRUE(same([](GlobalPlan&) {}));
  EXPECT_FALSE(same([](GlobalPlan& p) { p.signature = 6; }));
  EXPECT_FALSE(same([](GlobalPlan& p) { p.tensors[0].key = "a"; }));
  EXPECT_FALSE(same([](GlobalPlan& p) { p.tensors[0].dtype = DType::kInt32; }));
  EXPECT_FALSE(same([](GlobalPlan& p) { p.tensors[0].shape = {3, 3}; }));
  EXPECT_FALSE(same([](GlobalPlan& p) { p.tensors[0].owners[0] = {1}; }));
  EXPECT_FALSE(same([](GlobalPlan& p) {
    p.tensors[0].boxes = std::make_shared<const std::vector<Box>>(2, Box{{0, 0}, {1, 3}});
  }));
  EXPECT_FALSE(same([](GlobalPlan& p) { p.tensors.pop_back(); }));
  EXPECT_FALSE(same([](GlobalPlan& p) { p.objects[0].key = "p/shard_0_1"; }));
  EXPECT_FALSE(same([](GlobalPlan& p) { p.objects[0].owner = {0}; }));
  EXPECT_FALSE(same([](GlobalPlan& p) { p.objects.clear(); }));
}

}  // namespace
}  // namespace reprise
