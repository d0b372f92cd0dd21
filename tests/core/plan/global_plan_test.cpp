#include <gtest/gtest.h>

#include "core/plan/save_plan.hpp"

namespace reprise {
namespace {

std::shared_ptr<const Mesh> tp2_dp2() {
  return std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 2}, {"dp", 2}});
}

TensorLeaf leaf_at(const std::string& key, const Dims& shape, std::shared_ptr<const Mesh> mesh,
                   const Placement& placement, GroupRank member) {
  TensorLeaf leaf;
  leaf.key = key;
  leaf.shape = shape;
  leaf.pieces = {contiguous_piece(placement.box(shape, *mesh, member))};
  leaf.replica = placement.replica(*mesh, member);
  leaf.placed = Placed{std::move(mesh), placement};
  return leaf;
}

TEST(GlobalPlan, the_example_of_the_header) {
  std::vector<LocalPlan> plans;
  for (int r = 0; r < 4; ++r) {
    StateDict state;
    state.tensors.push_back(leaf_at("w", {4, 6}, tp2_dp2(), Placement({{"tp", 0}}), {r}));
    plans.push_back(local_plan(state));
  }
  const GlobalPlan plan = global_plan(plans);
  ASSERT_EQ(plan.tensors.size(), 1U);
  ASSERT_EQ(plan.tensors[0].chunks.size(), 2U);
  EXPECT_EQ(plan.tensors[0].chunks[0].box, (Box{{0, 0}, {2, 6}}));
  EXPECT_EQ(plan.tensors[0].chunks[0].owner, GroupRank{0});
  EXPECT_EQ(plan.tensors[0].chunks[1].owner, GroupRank{1});
}

}  // namespace
}  // namespace reprise
