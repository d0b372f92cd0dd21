#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>

#include "core/geometry/folded_shape.hpp"
#include "core/plan/save_plan.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/core/geometry/small_worlds.hpp"

namespace reprise {
namespace {

using ::testing::HasSubstr;

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

std::shared_ptr<const Mesh> tp2_dp2() {
  return std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 2}, {"dp", 2}});
}

/// Returns the plans of four ranks that hold a tensor "w" of shape [4, 6], split by tp. Before
/// planning, `change` edits the ranks' states.
std::vector<LocalPlan> four_ranks(const std::function<void(std::vector<StateDict>&)>& change = {},
                                  ChunkRule describe = ceil_chunk) {
  std::vector<StateDict> states(4);
  for (int r = 0; r < 4; ++r) {
    auto& state = states[static_cast<std::size_t>(r)];
    state.tensors.push_back(leaf_at("w", {4, 6}, tp2_dp2(), Placement({{"tp", 0}}), {r}));
    state.objects.push_back({"rng", {2, 2}, {r / 2, r % 2}, 0, r});
  }
  if (change) change(states);
  std::vector<LocalPlan> plans;
  for (int r = 0; r < 4; ++r) {
    plans.push_back(local_plan(states[static_cast<std::size_t>(r)], {r}, describe));
  }
  return plans;
}

std::string refusal(const std::vector<LocalPlan>& plans, ChunkRule describe = ceil_chunk) {
  try {
    global_plan(plans, Group::world(static_cast<std::int32_t>(plans.size())), nullptr, describe);
  } catch (const Error& error) {
    return error.what();
  }
  return "planned";
}

TEST(GlobalPlan, the_example_of_the_header) {
  const GlobalPlan plan = global_plan(four_ranks());
  ASSERT_EQ(plan.tensors.size(), 1U);
  ASSERT_EQ(plan.tensors[0].owners.size(), 2U);
  EXPECT_EQ((*plan.tensors[0].boxes)[0], (Box{{0, 0}, {2, 6}}));
  EXPECT_EQ(plan.tensors[0].owners[0], GroupRank{0});
  EXPECT_EQ(plan.tensors[0].owners[1], GroupRank{1});
  ASSERT_EQ(plan.objects.size(), 4U);
  EXPECT_EQ(plan.objects[2].key, "rng/shard_1.0_2.2");
  EXPECT_EQ(plan.objects[2].owner, GroupRank{2});
}

/// A rank's half of a tensor of 9 dimensions.
StateDict folded_half(std::int64_t rank, const FoldedExtents& folded) {
  TensorLeaf leaf{.key = "w", .shape = {2, 1, 1, 1, 1, 1, 1, 12}, .replica = 0};
  leaf.folded = folded;
  leaf.pieces = {contiguous_piece({{rank, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 12}})};
  return {.tensors = {leaf}, .objects = {}};
}

std::string plan_of_folds(const FoldedExtents& first, const FoldedExtents& second) {
  try {
    std::vector<Bytes> wires;
    for (std::int32_t rank : {0, 1}) {
      const StateDict state = folded_half(rank, rank == 0 ? first : second);
      wires.push_back(encode(local_plan(state, GlobalRank{rank})));
    }
    return shape_text(global_plan(decode_local_plans(wires)).tensors.at(0).folded);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(GlobalPlan, ranks_agree_on_the_dimensions_that_are_folded) {
  EXPECT_EQ(plan_of_folds({3, 4}, {3, 4}), "[3, 4]");
  for (const FoldedExtents& other : {FoldedExtents{4, 3}, {}}) {
    const std::string refused = plan_of_folds({3, 4}, other);
    EXPECT_THAT(refused, HasSubstr("SHAPE_DRIFT"));
    EXPECT_THAT(refused, HasSubstr("[2, 1, 1, 1, 1, 1, 1, 3, 4] on rank 0"));
  }
}

TEST(GlobalPlan, dimensions_that_cannot_be_folded_are_a_garbled_message) {
  for (const FoldedExtents& wrong : {FoldedExtents{3, 5}, {12}, {-3, -4}, FoldedExtents(58, 1)}) {
    EXPECT_THAT(plan_of_folds({3, 4}, wrong), HasSubstr("impossible dimensions"));
  }
}

struct Refused {
  const char* what;
  std::function<void(std::vector<StateDict>&)> change;
  std::vector<const char*> words;
};

TEST(GlobalPlan, what_does_not_fit_together_is_refused_by_name) {
  const std::vector<Refused> rows = {
      {"a rank moves its box",
       [](auto& s) { s[1].tensors[0].pieces[0].box.offset[0] = 1; },
       {"LAYOUT_MISMATCH", "rank 1", "[1:3, 0:6]", "[2:4, 0:6]", "key w"}},
      {"nobody is the main copy",
       [](auto& s) { s[0].tensors[0].replica = 1; },
       {"NO_WRITER", "[0:2, 0:6]", "0 2"}},
      {"two are the main copy",
       [](auto& s) { s[2].tensors[0].replica = 0; },
       {"MULTI_WRITER", "[0:2, 0:6]", "0 2"}},
      {"a shape differs",
       [](auto& s) { s[3].tensors[0].shape[1] = 7; },
       {"SHAPE_DRIFT", "[4, 6] on rank 0", "[4, 7] on rank 3"}},
      {"a type differs",
       [](auto& s) { s[3].tensors[0].dtype = DType::kBFloat16; },
       {"DTYPE_DRIFT", "float32 on rank 0", "bfloat16 on rank 3"}},
      {"common state differs",
       [](auto& s) {
         s[2].common = Dict{{"iteration", 7}};
       },
       {"COMMON_STATE_DIVERGES", "ranks 2 hold"}},
      {"as many ranks have one common state as another, so that of the first rank counts",
       [](auto& s) {
         s[2].common = s[3].common = Dict{{"iteration", 7}};
       },
       {"COMMON_STATE_DIVERGES", "ranks 2 3 hold"}},
      {"arbitrary boxes overlap",
       [](auto& s) {
         for (auto& state : s) state.tensors[0].placed.reset();
         for (int r : {1, 3})
           s[static_cast<std::size_t>(r)].tensors[0].pieces[0].box = {{1, 0}, {3, 6}};
       },
       {"CHUNK_OVERLAP", "[1:2, 0:6]", "offered by ranks 0 1 2 3"}},
      {"arbitrary boxes leave a gap",
       [](auto& s) {
         for (auto& state : s) state.tensors[0].placed.reset();
         for (int r : {1, 3})
           s[static_cast<std::size_t>(r)].tensors[0].pieces[0].box = {{3, 0}, {1, 6}};
       },
       {"COVERAGE_GAP", "[2:3, 0:6]"}},
      {"two ranks do not offer their part",
       [](auto& s) { s[1].tensors.clear(), s[3].tensors.clear(); },
       {"COVERAGE_GAP", "[2:4, 0:6]"}},
      {"an object's shard is absent",
       [](auto& s) { s[2].objects.clear(); },
       {"COVERAGE_GAP", "[1, 0]", "key rng"}},
      {"an object has two main copies",
       [](auto& s) {
         s[2].objects[0].coordinate = {0, 0};
       },
       {"COVERAGE_GAP", "[1, 0]"}},
      {"an object has one main copy too many",
       [](auto& s) {
         s[2].objects.push_back({"rng", {2, 2}, {0, 1}, 0, 0});
       },
       {"MULTI_WRITER", "ranks 1 2"}},
      {"an object has no main copy",
       [](auto& s) { s[2].objects[0].replica = 1; },
       {"NO_WRITER", "ranks 2"}},
      {"objects disagree on the grid",
       [](auto& s) {
         s[2].objects[0].grid = {3, 2};
       },
       {"LAYOUT_MISMATCH", "[2, 2]", "[3, 2]"}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    const std::string said = refusal(four_ranks(row.change));
    for (const char* word : row.words) EXPECT_THAT(said, HasSubstr(word));
  }
}

Interval floor_offsets(std::int64_t length, std::int64_t parts, std::int64_t index) {
  const std::int64_t begin = index * (length / parts);
  return {begin, begin + ceil_chunk(length, parts, index).length()};
}
Interval balanced_part(std::int64_t length, std::int64_t parts, std::int64_t index) {
  return {length * index / parts, length * (index + 1) / parts};
}

TEST(GlobalPlan, a_describer_that_is_not_the_slicer_is_refused) {
  const auto mesh = std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 3}});
  const auto said = [&mesh](ChunkRule describe) {
    try {
      std::vector<LocalPlan> plans;
      for (int r = 0; r < 3; ++r) {
        StateDict state;
        state.tensors.push_back(leaf_at("w", {7}, mesh, Placement({{"tp", 0}}), {r}));
        plans.push_back(local_plan(state, {r}, describe));
      }
      return refusal(plans, describe);
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(said(ceil_chunk), "planned");
  EXPECT_THAT(said(floor_offsets), HasSubstr("COVERAGE_GAP"));
  EXPECT_THAT(said(balanced_part), HasSubstr("LAYOUT_MISMATCH"));
}

TEST(GlobalPlan, a_mesh_of_other_ranks_is_tied_to_the_group_that_saves) {
  const auto mesh = std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 2}},
                                                 Group(std::vector<GlobalRank>{{7}, {4}}));
  std::vector<LocalPlan> plans;
  for (int member : {1, 0}) {  // ranks 4 and 7, in this order
    StateDict state;
    state.tensors.push_back(leaf_at("w", {4}, mesh, Placement({{"tp", 0}}), {member}));
    plans.push_back(local_plan(state, mesh->members().member({member})));
  }
  const GlobalPlan plan = global_plan(plans, Group(std::vector<GlobalRank>{{4}, {7}}));
  EXPECT_EQ(plan.tensors[0].owners[0], GroupRank{1});
  EXPECT_THAT(refusal(plans), HasSubstr("LAYOUT_MISMATCH"));
}

/// The brute-force reference computes which ranks hold each element. Each element must have exactly
/// one owner, and the owner must hold the element.
TEST(GlobalPlan, in_every_small_world_each_element_has_one_owner_who_holds_it) {
  test::for_each_world(3, 2, [](const test::World& world) {
    const auto mesh = std::make_shared<const Mesh>(world.mesh);
    for (const Dims& shape : {Dims{}, Dims{5}, Dims{0}, Dims{3, 5}}) {
      const auto rank = static_cast<int>(shape.size());
      test::for_each_placement(world, rank, [&](const Placement& placement, const auto& splits) {
        for (const bool placed : {true, false}) {
          std::vector<LocalPlan> plans;
          for (std::int32_t m = 0; m < world.mesh.size(); ++m) {
            StateDict state;
            state.tensors.push_back(leaf_at("w", shape, mesh, placement, {m}));
            if (!placed) state.tensors[0].placed.reset();
            const GlobalRank self = world.mesh.members().member({m});
            plans.push_back(decode_local_plan(encode(local_plan(state, self))));
            ASSERT_EQ(signature(plans.back()), signature(local_plan(state, self)));
          }
          const GlobalPlan plan = global_plan(plans, world.mesh.members());
          const auto held = brute::holders(test::numbers(shape), world.grid, splits);
          const auto indices = brute::all_indices(test::numbers(shape));
          for (std::size_t e = 0; e < indices.size(); ++e) {
            int owners = 0;
            const PlannedTensor& tensor = plan.tensors[0];
            for (std::size_t c = 0; c < tensor.owners.size(); ++c) {
              if (!test::holds((*tensor.boxes)[c], indices[e])) continue;
              ++owners;
              ASSERT_TRUE(held[static_cast<std::size_t>(tensor.owners[c].value)][e]);
            }
            ASSERT_EQ(owners, 1) << world.mesh << " " << placement << " " << shape;
          }
        }
      });
    }
  });
}

TEST(GlobalPlan, replicas_share_writes_to_within_the_largest_box) {
  const auto mesh = std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 2}, {"dp", 4}});
  std::vector<LocalPlan> plans;
  std::uint64_t largest = 0;
  for (int r = 0; r < 8; ++r) {
    StateDict state;
    for (int t = 0; t < 100; ++t) {
      const Dims shape = {2 + (t * 37) % 61, 4};
      const Placement placement = t % 3 == 0 ? Placement() : Placement({{"tp", 0}});
      state.tensors.push_back(leaf_at("w" + std::to_string(t), shape, mesh, placement, {r}));
      largest = std::max(
          largest, 4 * static_cast<std::uint64_t>(state.tensors.back().pieces[0].box.elements()));
    }
    plans.push_back(local_plan(state, {r}));
  }
  const GlobalPlan plan = global_plan(plans);
  std::uint64_t sum = 0;
  for (const auto bytes : plan.bytes) sum += bytes;
  for (const auto bytes : plan.bytes) {
    EXPECT_LE(bytes, sum / 8 + largest);
    EXPECT_GE(bytes + largest, sum / 8);
  }
  EXPECT_EQ(global_plan(plans).signature, plan.signature);
}

TEST(GlobalPlan, an_empty_box_is_no_chunk_unless_there_is_nothing_else) {
  const auto boxes = [](const Dims& shape, const std::vector<Split>& splits, bool placed) {
    const auto mesh = std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 2}, {"dp", 3}});
    std::vector<LocalPlan> plans;
    for (int r = 0; r < 6; ++r) {
      StateDict state;
      state.tensors.push_back(leaf_at("w", shape, mesh, Placement(splits), {r}));
      if (!placed) state.tensors[0].placed.reset();
      plans.push_back(local_plan(state, {r}));
    }
    return *global_plan(plans).tensors[0].boxes;
  };
  for (const bool placed : {true, false}) {
    // Of the empty boxes, some begin at row 2, where a box with elements also begins. The others
    // begin at row 3, where no other box begins.
    const std::vector<Box> rows = {{{0, 0}, {1, 2}}, {{1, 0}, {1, 2}}, {{2, 0}, {1, 2}}};
    EXPECT_EQ(boxes({3, 2}, {{"tp", 0}, {"dp", 0}}, placed), rows);
    const std::vector<Box> halves = {{{0, 0}, {1, 2}}, {{1, 0}, {1, 2}}};
    EXPECT_EQ(boxes({2, 2}, {{"dp", 0}}, placed), halves);
    const std::vector<Box> nothing = {{{0, 0}, {0, 2}}};
    EXPECT_EQ(boxes({0, 2}, {{"dp", 0}}, placed), nothing);
  }
}

TEST(GlobalPlan, an_empty_box_beside_another_still_has_to_lie_in_the_shape) {
  for (const Dims& extent : {Dims{0, 9999}, Dims{0, -5}}) {
    StateDict whole;
    whole.tensors.push_back({.key = "w", .shape = {2, 2}});
    whole.tensors[0].pieces = {contiguous_piece(Box::whole({2, 2}))};
    StateDict ill;
    ill.tensors.push_back({.key = "w", .shape = {2, 2}});
    ill.tensors[0].pieces = {{{{0, 0}, extent}, 0, {2, 1}}};
    const std::string said = refusal({local_plan(whole, {0}), local_plan(ill, {1})});
    EXPECT_TRUE(said.starts_with("EXTENT_MISMATCH")) << said;
  }
}

TEST(GlobalPlan, a_key_offered_by_placement_and_by_boxes_is_offered_twice) {
  std::vector<LocalPlan> plans = four_ranks();
  plans[1].given =
      GivenOffers({{.form = {"w", DType::kFloat32, {4, 6}}, .boxes = {}, .replica = 1}});
  const std::string said = refusal(plans);
  EXPECT_THAT(said, HasSubstr("MULTI_WRITER"));
  EXPECT_THAT(said, HasSubstr("rank 1 offers this key twice"));
}

TEST(LocalPlanOnTheWire, a_tensor_without_its_placement_is_refused) {
  LocalPlan plan = four_ranks()[1];
  PlacedOffers offers = *plan.placed;
  ASSERT_EQ(offers.placements.size(), 1U);
  offers.tensors.at(0).placed = 1;
  plan.placed = std::make_shared<const PlacedOffers>(offers);
  EXPECT_THROW(decode_local_plan(encode(plan)), Error);
}

TEST(LocalPlanOnTheWire, keeps_the_box_that_a_rank_was_denied) {
  TensorOffer offer{.form = {"w", DType::kFloat32, {4, 9}}, .boxes = {}, .replica = 0};
  offer.denied = Box{{1, 5}, {3, 2}};
  LocalPlan plan;
  plan.given = GivenOffers({offer, offer});
  const LocalPlan received = decode_local_plan(encode(plan));
  ASSERT_EQ(received.given.size(), 2U);
  for (const std::size_t i : {0U, 1U}) {
    ASSERT_NE(received.given.denied(i), nullptr);
    EXPECT_EQ(*received.given.denied(i), *offer.denied);
  }
}

TEST(LocalPlanOnTheWire, keeps_the_numbers_of_the_ranks_of_a_mesh_up_to_the_largest) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const std::vector<GlobalRank>& ranks :
       {std::vector<GlobalRank>{{kMost}}, {{3}, {kMost - 1}, {kMost}}}) {
    const Group members(ranks);
    const auto mesh =
        std::make_shared<const Mesh>(std::vector<Axis>{{"dp", members.size()}}, members);
    LocalPlan plan = four_ranks()[1];
    PlacedOffers offers = *plan.placed;
    offers.placements.at(0) = {mesh, Placement()};
    plan.placed = std::make_shared<const PlacedOffers>(offers);
    const LocalPlan received = decode_local_plan(encode(plan));
    EXPECT_EQ(received.placed->placements.at(0).mesh->members().members(), members.members());
  }
}

TEST(LocalPlanOnTheWire, a_denied_box_that_ends_beyond_all_numbers_is_refused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t extent : {kMost - 1, kMost}) {
    TensorOffer offer{.form = {"w", DType::kFloat32, {4}}, .boxes = {}, .replica = 0};
    offer.denied = Box{{1}, {extent}};
    LocalPlan plan;
    plan.given = GivenOffers({offer});
    EXPECT_EQ(contracts::code_of([&] { decode_local_plan(encode(plan)); }) == Code::kTornFile,
              extent == kMost);
  }
}

TEST(LocalPlanOnTheWire, is_refused_when_cut_or_flipped_and_never_crashes) {
  const Bytes bytes = encode(four_ranks()[1]);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(decode_local_plan(ByteSpan(bytes).first(size)), Error) << size;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (unsigned value = 0; value < 256; ++value) {
      Bytes bad = bytes;
      bad[at] = static_cast<std::byte>(value);
      try {
        decode_local_plan(bad);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), Code::kTornFile) << error.what();
      }
    }
  }
}

TEST(Signature, changes_with_everything_but_the_common_state) {
  const auto one = [](const std::function<void(StateDict&)>& change) {
    return signature(four_ranks([&](auto& s) { change(s[1]); })[1]);
  };
  const std::uint64_t plain = one([](StateDict&) {});
  EXPECT_EQ(plain, one([](StateDict& s) { s.common = Dict{{"iteration", 7}}; }));
  EXPECT_NE(plain, one([](StateDict& s) { s.tensors[0].key = "v"; }));
  EXPECT_NE(plain, one([](StateDict& s) { s.tensors[0].dtype = DType::kInt32; }));
  EXPECT_NE(plain, one([](StateDict& s) { s.tensors[0].shape[1] = 7; }));
  EXPECT_NE(plain, one([](StateDict& s) { s.tensors[0].pieces[0].box.extent[1] = 5; }));
  EXPECT_NE(plain, one([](StateDict& s) { s.tensors[0].replica = 3; }));
  EXPECT_NE(plain, one([](StateDict& s) { s.tensors[0].placed.reset(); }));
  EXPECT_NE(plain, one([](StateDict& s) { s.objects[0].replica = 3; }));
  EXPECT_NE(plain, one([](StateDict& s) { s.objects.clear(); }));
}

TEST(Signature, tells_a_plan_that_is_refused_from_one_that_is_not) {
  TensorOffer offer{.form = {"w", DType::kFloat32, {4}}, .boxes = {Box::whole({4})}};
  LocalPlan plain;
  plain.given = GivenOffers({offer});
  offer.denied = Box{{0}, {2}};
  LocalPlan denied;
  denied.given = GivenOffers({offer});
  EXPECT_NE(signature(plain), signature(denied));
}

TEST(GlobalPlan, boxes_of_any_numbers_are_refused_in_words) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const Box& box : {Box{{kMost}, {kMost}}, Box{{-1}, {2}}, Box{{3}, {2}}, Box{{0}, {-1}}}) {
    for (const int replica : {0, 1}) {
      LocalPlan plan;
      plan.given =
          GivenOffers({{.form = {"w", DType::kFloat32, {4}}, .boxes = {box}, .replica = replica}});
      const std::string said = refusal({decode_local_plan(encode(plan))});
      EXPECT_THAT(said, HasSubstr("EXTENT_MISMATCH")) << said;
      EXPECT_THAT(said, HasSubstr("key w")) << said;
    }
  }
}

TEST(LocalPlan, leaves_that_cannot_be_planned_are_refused) {
  StateDict twice;
  twice.tensors.resize(2);
  EXPECT_THROW(local_plan(twice, {0}), Error);
  twice.tensors.resize(2000);
  EXPECT_THROW(local_plan(twice, {0}), Error);
  StateDict both_ways;
  for (const char* key : {"a", "m", "z"}) {
    both_ways.tensors.push_back(leaf_at(key, {4, 6}, tp2_dp2(), Placement({{"tp", 0}}), {0}));
  }
  both_ways.tensors.push_back(both_ways.tensors[1]);
  both_ways.tensors.back().placed.reset();
  EXPECT_EQ(contracts::code_of([&] { local_plan(both_ways, {0}); }), Code::kMultiWriter);
  StateDict object;
  object.objects = {{"a/b", {1}, {0}, 0, {}}};
  EXPECT_THROW(local_plan(object, {0}), Error);
}

}  // namespace
}  // namespace reprise
