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
  PlannedTensor tensor{.key = key, .shape = {2, 3}, .boxes = {}, .owners = std::move(owners)};
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

}  // namespace
}  // namespace reprise
