// Tests placements in checkpoints that combine the model's splits with the optimizer's sharding,
// for each rank of a training job. Each check is a test of its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/load/load.hpp"
#include "core/save/save.hpp"
#include "sim/job/job.hpp"
#include "sim/job/optimizer/family.hpp"
#include "sim/world/world.hpp"

namespace reprise::sim {
namespace {

constexpr ShareRule kRows{.sharding = Sharding::kFsdpDtensor, .dim = 0};

const LocalParameter* parameter_of(const Family& family, std::string_view key) {
  const auto found = std::find_if(family.parameters.begin(), family.parameters.end(),
                                  [key](const auto& one) { return one.spec.key == key; });
  return found == family.parameters.end() ? nullptr : &*found;
}

Family family_on(const char* model, const char* layout, std::int32_t rank,
                 MeshKind kind = MeshKind::kDense) {
  return family_of(kind, model_named(model), parse_layout(layout), {rank}, ceil_chunk);
}

/// Returns the placement of one parameter. It combines the model's splits with the splits that
/// share the parameter among the ranks of its family.
Placement wrapped(const Family& family, const LocalParameter& parameter) {
  return shared_placement(parameter.spec.placement, parameter.spec.shape, family.sharing, kRows);
}

TEST(PlacementChecks, Wrapping_ShardsOfTheRunGoBehindThoseOfTheCheckpoint) {
  const Family dense = family_on("moe-tiny", "tp2 cp2 dp2", 0);
  const auto* columns = parameter_of(dense, "decoder.layers.0.self_attention.linear_proj.weight");
  ASSERT_NE(columns, nullptr);
  EXPECT_EQ(wrapped(dense, *columns), Placement({{"tp", 1}, {"dp_shard", 0}, {"cp", 0}}));
  const Family experts = family_on("moe-tiny", "tp2 ep2 dp4", 0, MeshKind::kExpert);
  const auto* stacked = parameter_of(experts, "decoder.layers.1.mlp.experts.linear_fc1.weight");
  ASSERT_NE(stacked, nullptr);
  EXPECT_EQ(wrapped(experts, *stacked), Placement({{"ep", 0}, {"etp", 1}, {"edp_shard", 0}}));
}

TEST(PlacementChecks, Wrapping_WhatTheCheckpointCopiesKeepsItsMeshAndPlacement) {
  for (const char* layout : {"tp2 dp2", "tp2 ep2 dp2", "tp2 dp4 dp_replicate2", "pp2 tp2 dp2"}) {
    SCOPED_TRACE(layout);
    const Family dense = family_on("moe-tiny", layout, 0);
    int replicated = 0;
    for (const auto& parameter : dense.parameters) {
      if (!parameter.spec.placement.splits().empty()) continue;
      ++replicated;
      EXPECT_TRUE(parameter.mesh->axis("tp").has_value()) << parameter.spec.key;
      EXPECT_EQ(parameter.tensor.shape, parameter.spec.shape) << parameter.spec.key;
      const Placement all = wrapped(dense, parameter);
      for (const Split& split : all.splits()) {
        EXPECT_TRUE(split.axis == "dp_shard" || split.axis == "cp")
            << parameter.spec.key << " is split along " << split.axis;
      }
    }
    EXPECT_GT(replicated, 5);
  }
}

TEST(PlacementChecks, MultiAxisShapeExpansion_TheGlobalShapeCoversAllAxes) {
  struct Row {
    const char* layout;
    MeshKind kind;
    const char* key;
  };
  const std::array rows = {
      Row{"tp2 ep2 dp4", MeshKind::kExpert, "decoder.layers.1.mlp.experts.linear_fc2.weight"},
      Row{"tp2 ep2 dp4 etp1", MeshKind::kExpert, "decoder.layers.1.mlp.experts.linear_fc2.weight"},
      Row{"tp2 cp2 dp3", MeshKind::kDense, "decoder.layers.1.self_attention.linear_qkv.weight"},
      Row{"tp3 dp4 dp_replicate2", MeshKind::kDense, "head.weight"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.layout) + " " + row.key);
    const Layout layout = parse_layout(row.layout);
    std::int64_t held = 0;
    Dims reach;
    Dims shape;
    for (std::int32_t r = 0; r < layout.world_size(); ++r) {
      const Family family = family_on("moe-tiny", row.layout, r, row.kind);
      const LocalParameter* parameter = parameter_of(family, row.key);
      ASSERT_NE(parameter, nullptr);
      shape = parameter->spec.shape;
      const Placement all = wrapped(family, *parameter);
      const Box box = all.box(shape, *parameter->mesh, parameter->member);
      if (all.replica(*parameter->mesh, parameter->member) == 0) held += box.elements();
      if (reach.empty()) reach = Dims::filled(shape.size(), 0);
      for (std::size_t d = 0; d < shape.size(); ++d) {
        reach[d] = std::max(reach[d], box.interval(d).end);
      }
    }
    EXPECT_EQ(reach, shape);
    EXPECT_EQ(held, volume(shape));
  }
}

TEST(PlacementChecks, Unsharded_OneRankHoldsEachTensorWhole) {
  for (const char* model : {"gpt-tiny", "moe-tiny", "moe-tiny-experts"}) {
    for (const auto kind : kinds_of(model_named(model))) {
      const Family family = family_on(model, "tp1", 0, kind);
      EXPECT_FALSE(family.parameters.empty());
      for (const auto& parameter : family.parameters) {
        const Placement all = wrapped(family, parameter);
        EXPECT_EQ(all.box(parameter.spec.shape, *parameter.mesh, parameter.member),
                  Box::whole(parameter.spec.shape))
            << parameter.spec.key;
        EXPECT_EQ(all.replicas(*parameter.mesh), 1) << parameter.spec.key;
        EXPECT_EQ(parameter.tensor.shape, parameter.spec.shape) << parameter.spec.key;
      }
    }
  }
}

/// Returns the number of elements of a rank's leaf. Does not access the elements, which may be in
/// device memory.
std::int64_t elements_of(const TensorLeaf& leaf) {
  std::int64_t elements = 0;
  for (const auto& piece : leaf.pieces) elements += piece.box.elements();
  return elements;
}

/// A job of 5 ranks. In tensors with 3 rows, the last two ranks have no elements.
struct EmptyRanks {
  static constexpr std::int32_t kRanks = 5;
  static constexpr const char* kKey = "decoder.layers.0.hyper_connection.beta";

  JobConfig config{.makeup = {.model = "moe-tiny", .layout = parse_layout("dp5")},
                   .checkpoint = {.optimizer_sharding = Sharding::kFsdpDtensor}};
  SimStore store;

  void run(const std::function<void(TrainingJob&, Ports&)>& work) {
    World world({.world_size = kRanks}, store);
    const RunResult result = world.run([&](Ports& ports, GlobalRank) {
      TrainingJob job(config, ports.fabric);
      work(job, ports);
    });
    for (const auto& rank : result.ranks) {
      EXPECT_EQ(rank.end, RankEnd::kReturned) << rank.message;
    }
  }
  void save() {
    run([](TrainingJob& job, Ports& ports) {
      job.step();
      const StateDict state = job.state();
      const TensorLeaf* leaf = leaf_of(state);
      ASSERT_NE(leaf, nullptr);
      EXPECT_EQ(leaf->shape, (Dims{3, 4}));
      EXPECT_EQ(elements_of(*leaf), job.rank().value < 3 ? 4 : 0) << job.rank();
      Save::begin(ports, job.world_group(), state,
                  {.directory = "run", .step = job.iteration().value})
          .finish();
    });
  }
  static const TensorLeaf* leaf_of(const StateDict& state) {
    const auto found = std::find_if(state.tensors.begin(), state.tensors.end(),
                                    [](const TensorLeaf& leaf) { return leaf.key == kKey; });
    return found == state.tensors.end() ? nullptr : &*found;
  }
};

TEST(PlacementChecks, EmptyLocalSave_RanksWithoutRowsSaveAndTheTensorIsWhole) {
  EmptyRanks ranks;
  ranks.save();
  const Checkpoint checkpoint = Checkpoint::open(ranks.store, "run/iter_0000001");
  const StoredTensor* stored = checkpoint.catalog().tensor(EmptyRanks::kKey);
  ASSERT_NE(stored, nullptr);
  EXPECT_EQ(logical_shape(*stored), (Dims{3, 4}));
  std::int64_t elements = 0;
  for (const auto& chunk : stored->chunks) {
    for (const auto& piece : pieces_of(*stored, chunk)) elements += piece.box.elements();
  }
  EXPECT_EQ(elements, 12) << "no chunk may be missing or written twice";
}

TEST(PlacementChecks, EmptyCopyNoOp_ALoadIntoNothingReadsAndChangesNothing) {
  EmptyRanks ranks;
  ranks.save();
  ranks.run([](TrainingJob& job, Ports& ports) {
    const auto common = read_common(ports.store, job.world(), "run");
    LoadRequest request = job.load_request(&*common);
    std::erase_if(request.wanted.tensors,
                  [](const TensorLeaf& leaf) { return leaf.key != EmptyRanks::kKey; });
    ASSERT_EQ(request.wanted.tensors.size(), 1U);
    const bool empty = elements_of(request.wanted.tensors.front()) == 0;
    EXPECT_EQ(empty, job.rank().value >= 3);
    std::byte guard{0x5a};
    if (empty) request.wanted.tensors.front().data = &guard;
    const LoadResult report = reprise::load(
        ports, job.world(), request.wanted,
        {.directory = "run", .strictness = Strictness::kIgnoreAll, .excused = request.excused});
    EXPECT_EQ(report.elements, empty ? 0U : 4U) << job.rank();
    EXPECT_EQ(report.bytes_read, empty ? 0U : 8U) << job.rank();
    EXPECT_EQ(guard, std::byte{0x5a});
  });
}

}  // namespace
}  // namespace reprise::sim
