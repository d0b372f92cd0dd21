// Tests layouts, local tensors, shares and buckets against a simple enumeration of all elements.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "reprise/error.hpp"
#include "sim/job/optimizer/family.hpp"
#include "tests/contracts/brute.hpp"

namespace reprise::sim {
namespace {

const std::vector<std::string> kLayouts = {"tp1",
                                           "tp2 dp2",
                                           "tp2 cp2 dp2",
                                           "ep2 dp4",
                                           "tp2 ep4 dp4 etp1",
                                           "tp2 dp8 ep2 etp4 dp_replicate2",
                                           "tp2 dp4 ep4 dp_replicate2",
                                           "dp8 ep4 dp_replicate4",
                                           "pp2 tp2 ep2 dp2",
                                           "pp3 dp2",
                                           "pp2 vpp2 ep3 dp3",
                                           "pp2 dp4 ep2 order pp-dp-ep-tp-cp"};

TEST(Layout, DealsTheSameRanksToDenseTensorsAndExperts) {
  for (const auto& text : kLayouts) {
    SCOPED_TRACE(text);
    const Layout layout = parse_layout(text);
    for (const Mesh& mesh : {dense_mesh(layout), expert_mesh(layout)}) {
      EXPECT_EQ(mesh.size(), layout.world_size());
      EXPECT_EQ(mesh.axis_size("pp"), layout.pp);
    }
    EXPECT_EQ(expert_mesh(layout).axis_size("ep"), layout.ep);
    EXPECT_EQ(dense_mesh(layout).axis_size("dp_shard") * layout.dp_replicate, layout.dp);
    std::int32_t parts = 1;
    for (const auto axis : expert_part_axes()) parts *= expert_mesh(layout).axis_size(axis);
    EXPECT_EQ(parts, layout.expert_tp() * layout.ep * layout.pp);
  }
}

// Ranks along edp are copies of each other only as far as edp can be cut like dp.
TEST(Layout, ExpertsHaveAsManyCopiesAsDividesTheirRanksAndDp) {
  struct Row {
    const char* text;
    std::int32_t copies;
    std::int32_t shards;
  };
  for (const Row& row : {Row{"dp4 dp_replicate2", 2, 2}, Row{"dp4 dp_replicate2 ep2", 2, 1},
                         Row{"dp4 dp_replicate2 ep4", 1, 1}, Row{"dp8 dp_replicate4 ep4", 2, 1},
                         Row{"dp3 dp_replicate3 cp2 ep3", 1, 2}}) {
    const Mesh experts = expert_mesh(parse_layout(row.text));
    EXPECT_EQ(experts.axis_size("edp_replicate"), row.copies) << row.text;
    EXPECT_EQ(experts.axis_size("edp_shard"), row.shards) << row.text;
  }
}

// For the layout tp2 ep2 dp2 in Megatron's default order, the expert mesh uses the tp axis as etp
// and the dp axis as ep.
TEST(Layout, ExpertsOfTp2Ep2Dp2StandWhereMegatronPutsThem) {
  const Mesh experts = expert_mesh(parse_layout("tp2 dp2 ep2"));
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(experts.coordinate(GroupRank{rank}, "etp"), rank % 2);
    EXPECT_EQ(experts.coordinate(GroupRank{rank}, "ep"), rank / 2);
  }
}

TEST(Layout, LayersAreDealtToStages) {
  const auto stages = [](const char* text, std::int64_t layers) {
    std::string all;
    for (std::int64_t l = 0; l < layers; ++l) {
      all += std::to_string(stage_of(l, layers, parse_layout(text)));
    }
    return all;
  };
  EXPECT_EQ(stages("tp1", 3), "000");
  EXPECT_EQ(stages("pp2", 8), "00001111");
  EXPECT_EQ(stages("pp2 vpp2", 8), "00110011");
  EXPECT_EQ(stages("pp3", 7), "0001122");
  EXPECT_EQ(stages("pp2 layers 3-5", 8), "00011111");
  EXPECT_EQ(stages("pp4", 2), "01");
  EXPECT_THROW(stages("pp2 layers 3-4", 8), Error);
}

TEST(PartitionRules, TheMoreSpecificRuleDecides) {
  EXPECT_TRUE(partition_of("hc_head.weight").placement.replicated());
  EXPECT_EQ(partition_of("head.weight").placement, Placement({{"tp", 0}}));
  EXPECT_EQ(partition_of("decoder.layers.3.mlp.experts.linear_fc1.weight").mesh, MeshKind::kExpert);
  EXPECT_EQ(partition_of("decoder.layers.3.mlp.shared_experts.linear_fc1.weight").mesh,
            MeshKind::kDense);
  EXPECT_TRUE(
      partition_of("decoder.layers.0.mlp.linear_fc1.layer_norm_weight").placement.replicated());
}

/// For each element of a parameter, returns the ranks that have it. Reads this from the pieces of
/// each rank.
std::vector<std::set<std::int32_t>> holders(const ParameterSpec& spec, const ModelSpec& model,
                                            const Layout& layout) {
  std::vector<std::set<std::int32_t>> found(static_cast<std::size_t>(volume(spec.shape)));
  for (std::int32_t r = 0; r < layout.world_size(); ++r) {
    const Family family = family_of(spec.mesh, model, layout, GlobalRank{r}, ceil_chunk);
    for (const auto& parameter : family.parameters) {
      if (parameter.spec.key != spec.key) continue;
      for (const auto& map : element_maps(spec.shape, parameter.pieces, parameter.pieces)) {
        for_each_element(map, [&](const ElementPlace& at) {
          found[static_cast<std::size_t>(at.global)].insert(r);
        });
      }
    }
  }
  return found;
}

/// Returns the same as holders(), computed for each element separately. Splits every component of a
/// fused parameter on its own. Only ranks of the parameter's pipeline stages have the parameter.
std::vector<std::set<std::int32_t>> brute_holders(const ParameterSpec& spec, const ModelSpec& model,
                                                  const Layout& layout) {
  const Mesh mesh = spec.mesh == MeshKind::kDense ? dense_mesh(layout) : expert_mesh(layout);
  brute::Grid grid;
  for (const auto& axis : mesh.axes()) grid.axes.emplace_back(axis.name, axis.size);
  for (const auto rank : mesh.members().members()) grid.members.push_back(rank.value);
  brute::Splits splits;
  for (const auto& split : spec.placement.splits()) {
    splits.emplace_back(split.axis, static_cast<int>(split.dim));
  }
  brute::Numbers component(spec.shape.begin(), spec.shape.end());
  if (spec.fused.components > 1) component[spec.fused.dim] /= spec.fused.components;
  const auto held = brute::holders(component, grid, splits);
  const auto indices = brute::all_indices(component);
  const auto stages = stages_of(spec, model, layout);
  std::vector<std::set<std::int32_t>> found(static_cast<std::size_t>(volume(spec.shape)));
  const auto on_stages = [&](std::size_t m) {
    const auto at = brute::coordinates(grid, static_cast<int>(m));
    for (std::size_t a = 0; a < grid.axes.size(); ++a) {
      if (grid.axes[a].first != "pp") continue;
      return std::find(stages.begin(), stages.end(), at[a]) != stages.end();
    }
    return true;
  };
  for (std::size_t m = 0; m < grid.members.size(); ++m) {
    if (!on_stages(m)) continue;
    for (std::size_t e = 0; e < indices.size(); ++e) {
      if (!held[m][e]) continue;
      for (std::int64_t c = 0; c < spec.fused.components; ++c) {
        Dims index{std::span<const std::int64_t>(indices[e])};
        if (spec.fused.components > 1) index[spec.fused.dim] += c * component[spec.fused.dim];
        found[static_cast<std::size_t>(linear_index(index, spec.shape))].insert(grid.members[m]);
      }
    }
  }
  return found;
}

TEST(Family, HoldsWhatGoingThroughAllElementsSays) {
  ModelSpec model = moe("small", {.vocabulary = 13, .mtp_layers = 1});
  for (const auto& text : kLayouts) {
    SCOPED_TRACE(text);
    const Layout layout = parse_layout(text);
    for (const auto& spec : model.parameters) {
      EXPECT_EQ(holders(spec, model, layout), brute_holders(spec, model, layout)) << spec.key;
    }
  }
}

// Tests every sharding with every group size. Each element of a local tensor must belong to the
// share of exactly one rank of the group. A tensor without dimensions must belong to the share of
// every rank.
TEST(Shares, TileEachLocalTensor) {
  const std::vector<Dims> shapes = {{7, 5}, {512, 2}, {6, 4, 3}, {1}, {0, 4}, {30}, {}};
  std::vector<LocalTensor> tensors;
  for (const auto& shape : shapes) {
    ParameterSpec spec{.key = "w", .shape = shape};
    tensors.push_back(local_tensor(spec, {}, Mesh({{"tp", 1}}), GroupRank{0}, ceil_chunk));
  }
  for (const auto sharding : {Sharding::kFullyReshardable, Sharding::kDpReshardable,
                              Sharding::kFullyShardedModelSpace, Sharding::kFsdpDtensor}) {
    for (const std::size_t dim : {0U, 1U, 2U}) {
      for (const std::int32_t ranks : {1, 2, 3, 4, 8, 30}) {
        SCOPED_TRACE(std::string(name_of(sharding)) + " " + std::to_string(ranks));
        const ShareRule rule{.sharding = sharding, .dim = dim};
        const Mesh group(
            {{"cp", ranks % 2 == 0 ? 2 : 1}, {"dp_shard", ranks % 2 == 0 ? ranks / 2 : ranks}});
        const ShareTable table = share_out(tensors, group, 1, rule);
        const bool boxes =
            sharding == Sharding::kFullyReshardable || sharding == Sharding::kFsdpDtensor;
        for (std::size_t t = 0; t < tensors.size(); ++t) {
          std::vector<int> times(static_cast<std::size_t>(volume(shapes[t])));
          for (const auto& share : table.shares[t]) {
            for (const auto& piece : pieces_packed(tensors[t], share.boxes)) {
              for (std::int64_t e = 0; e < piece.box.elements(); ++e) {
                Dims at = index_at(e, piece.box.extent);
                for (std::size_t d = 0; d < at.size(); ++d) at[d] += piece.box.offset[d];
                ++times[static_cast<std::size_t>(linear_index(at, shapes[t]))];
              }
            }
          }
          const int expected = boxes && shapes[t].empty() ? ranks : 1;
          for (const int count : times) ASSERT_EQ(count, expected) << shapes[t];
        }
      }
    }
  }
}

TEST(Buckets, HaveRealPaddingAndKeepTheirContentUnderEveryGroupSize) {
  const std::vector<std::int64_t> sizes = {100, 3000, 7, 0, 129, 4000, 1};
  const auto one = bucket_layout(sizes, {1, 1}, {});
  ASSERT_EQ(one.size(), 3U);
  std::map<std::size_t, std::int64_t> found;
  for (const std::int32_t ranks : {1, 2, 3, 5, 16}) {
    const auto buckets = bucket_layout(sizes, {ranks, ranks}, {});
    ASSERT_EQ(buckets.size(), one.size());
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      EXPECT_EQ(buckets[b].entries, one[b].entries);
      EXPECT_EQ(buckets[b].unpadded, one[b].unpadded);
      EXPECT_EQ(buckets[b].padded % ranks, 0);
      EXPECT_GE(buckets[b].padded, buckets[b].unpadded);
      EXPECT_EQ(buckets[b].part(ranks - 1).end, buckets[b].padded);
      for (const auto& entry : buckets[b].entries) {
        EXPECT_EQ(entry.range.begin % 64, 0);
        found[entry.parameter] = entry.range.length();
      }
    }
  }
  for (std::size_t p = 0; p < sizes.size(); ++p) EXPECT_EQ(found[p], sizes[p]);
  EXPECT_GT(one[0].padded, one[0].unpadded);
}

}  // namespace
}  // namespace reprise::sim
