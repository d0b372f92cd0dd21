#include "core/plan/structure.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace reprise::structure_test {
namespace {

StateDict state_of_one_rank() {
  const auto mesh = std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 2}});
  StateDict state;
  for (const char* key : {"a", "b"}) {
    TensorLeaf leaf{.key = key, .dtype = DType::kFloat32, .shape = {4, 6}};
    leaf.pieces = {contiguous_piece({{0, 0}, {2, 6}})};
    leaf.placed = Placed{mesh, Placement({{"tp", 0}})};
    state.tensors.push_back(std::move(leaf));
  }
  state.objects = {{"rng", {2}, {0}, 0, Value(std::int64_t{1})}};
  return state;
}

struct Row {
  const char* what;
  std::function<void(StateDict&)> change;
};

TEST(Structure, is_all_but_the_payload) {
  const std::uint64_t before = structure_of(state_of_one_rank(), {0}).signature;
  const auto after = [](const Row& row) {
    StateDict state = state_of_one_rank();
    row.change(state);
    return structure_of(state, {0}).signature;
  };
  const std::vector<Row> same = {
      {"nothing", [](StateDict&) {}},
      {"order", [](StateDict& s) { std::reverse(s.tensors.begin(), s.tensors.end()); }},
      {"memory", [](StateDict& s) { s.tensors[0].data = reinterpret_cast<std::byte*>(&s); }},
      {"local offset", [](StateDict& s) { s.tensors[0].pieces[0].local = 12; }},
      {"strides",
       [](StateDict& s) {
         s.tensors[0].pieces[0].strides = {1, 2};
       }},
      {"object's value", [](StateDict& s) { s.objects[0].value = Value(true); }},
      {"common state",
       [](StateDict& s) {
         s.common = Dict{{"iteration", Value(true)}};
       }},
      {"an equal mesh",
       [](StateDict& s) {
         s.tensors[0].placed->mesh = std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 2}});
       }},
  };
  for (const auto& row : same) EXPECT_EQ(after(row), before) << row.what;
  const std::vector<Row> other = {
      {"key", [](StateDict& s) { s.tensors[0].key = "c"; }},
      {"dtype", [](StateDict& s) { s.tensors[0].dtype = DType::kInt32; }},
      {"shape",
       [](StateDict& s) {
         s.tensors[0].shape = {5, 6};
       }},
      {"offset",
       [](StateDict& s) {
         s.tensors[0].pieces[0].box.offset = {2, 0};
       }},
      {"extent",
       [](StateDict& s) {
         s.tensors[0].pieces[0].box.extent = {1, 6};
       }},
      {"no piece", [](StateDict& s) { s.tensors[0].pieces.clear(); }},
      {"replica", [](StateDict& s) { s.tensors[0].replica = 1; }},
      {"no placement", [](StateDict& s) { s.tensors[0].placed.reset(); }},
      {"dimension",
       [](StateDict& s) {
         s.tensors[0].placed->placement = Placement({{"tp", 1}});
       }},
      {"axis",
       [](StateDict& s) {
         s.tensors[0].placed->mesh = std::make_shared<const Mesh>(std::vector<Axis>{{"dp", 2}});
       }},
      {"members",
       [](StateDict& s) {
         s.tensors[0].placed->mesh = std::make_shared<const Mesh>(
             std::vector<Axis>{{"tp", 2}}, Group({GlobalRank{1}, GlobalRank{0}}));
       }},
      {"one leaf less", [](StateDict& s) { s.tensors.pop_back(); }},
      {"object's coordinate", [](StateDict& s) { s.objects[0].coordinate = {1}; }},
      {"object's grid", [](StateDict& s) { s.objects[0].grid = {3}; }},
      {"object's replica", [](StateDict& s) { s.objects[0].replica = 1; }},
      {"object's key", [](StateDict& s) { s.objects[0].key = "a"; }},
  };
  for (const auto& row : other) EXPECT_NE(after(row), before) << row.what;
  EXPECT_NE(structure_of(state_of_one_rank(), {1}).signature, before)
      << "the rank is part of the signature";
}

TEST(Structure, a_scope_is_its_structure_its_world_and_its_ranks_in_order) {
  const SaveScope scope{.structure = 7, .world_size = 4, .savers = {{0}, {2}}};
  EXPECT_NE(signature(scope), signature(SaveScope{8, 4, {{0}, {2}}}));
  EXPECT_NE(signature(scope), signature(SaveScope{7, 5, {{0}, {2}}}));
  EXPECT_NE(signature(scope), signature(SaveScope{7, 4, {{2}, {0}}}));
  EXPECT_NE(signature(scope), signature(SaveScope{7, 4, {{0}, {3}}}));
}

}  // namespace
}  // namespace reprise::structure_test
