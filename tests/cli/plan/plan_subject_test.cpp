#include "cli/plan/plan_subject.hpp"

#include <gtest/gtest.h>

#include "core/plan/save_plan.hpp"
#include "sim/job/optimizer/family.hpp"
#include "sim/job/optimizer/slots.hpp"

namespace reprise::cli {
namespace {

TensorLeaf leaf_of(std::string key, DType dtype, const sim::LocalParameter& parameter,
                   std::vector<Piece> pieces, Placement placement) {
  TensorLeaf leaf{.key = std::move(key), .dtype = dtype, .shape = parameter.spec.shape};
  leaf.pieces = std::move(pieces);
  leaf.replica = placement.replica(*parameter.mesh, parameter.member);
  if (parameter.spec.fused.components == 1) {
    leaf.placed = Placed{parameter.mesh, std::move(placement)};
  }
  return leaf;
}

/// Builds a rank's state leaf by leaf, in the same way as the simulated job does.
StateDict state_of(const sim::ModelSpec& model, const sim::Layout& layout, GlobalRank rank) {
  StateDict state;
  for (const auto kind : sim::kinds_of(model)) {
    const auto family = sim::family_of(kind, model, layout, rank, ceil_chunk);
    std::vector<sim::LocalTensor> tensors;
    for (const auto& parameter : family.parameters) tensors.push_back(parameter.tensor);
    const auto table = sim::share_out(tensors, family.sharing, family.instances, {});
    const auto own = sim::sharing_group(family).rank_of(rank);
    for (std::size_t p = 0; p < family.parameters.size(); ++p) {
      const auto& parameter = family.parameters[p];
      const auto& spec = parameter.spec;
      const Box whole = parameter.tensor.whole();
      const auto& boxes = table.shares[p][static_cast<std::size_t>(own->value)].boxes;
      state.tensors.push_back(leaf_of(spec.key, DType::kBFloat16, parameter,
                                      sim::pieces_packed(parameter.tensor, {&whole, 1}),
                                      spec.placement));
      for (const sim::Slot slot : sim::kSlots) {
        state.tensors.push_back(
            leaf_of(sim::slot_key(sim::Sharding::kFullyReshardable, slot, spec.key),
                    DType::kFloat32, parameter, sim::pieces_packed(parameter.tensor, boxes),
                    sim::shared_placement(spec.placement, spec.shape, family.sharing, {})));
      }
    }
  }
  return state;
}

TEST(PlanSubject, stages_described_once_offer_what_each_rank_would) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"gpt-tiny", "tp2 dp2"},
      {"gpt-tiny", "tp3 dp5 pp2"},
      {"gpt-tiny", "tp2 dp4 pp2 dp_replicate2 order=dp-tp-pp"},
      {"moe-tiny", "tp2 ep2 dp4 pp2 etp1"},
      {"moe-tiny-mtp", "ep2 dp4 pp2 vpp2"},
      {"moe-tiny-mtp", "tp2 cp2 ep4 dp3 pp4 etp1"}};
  for (const auto& [name, text] : rows) {
    const auto model = sim::model_named(name);
    const auto layout = sim::parse_layout(text);
    const auto offers = offers_of(model, layout);
    ASSERT_EQ(offers.size(), static_cast<std::size_t>(layout.world_size()));
    for (std::int32_t r = 0; r < layout.world_size(); ++r) {
      const auto expected = local_plan(state_of(model, layout, {r}), {r});
      const auto& offered = offers[static_cast<std::size_t>(r)];
      ASSERT_FALSE(expected.given.empty() && expected.placed->tensors.empty());
      EXPECT_EQ(signature(offered), signature(expected)) << name << " " << text << ", rank " << r;
      EXPECT_EQ(offered.given.size(), expected.given.size());
    }
  }
}

TEST(PlanSubject, models_of_the_field_have_their_published_sizes) {
  const auto parameters = [](const char* name) {
    std::int64_t sum = 0;
    for (const auto& parameter : sim::model_named(name).parameters) sum += volume(parameter.shape);
    return static_cast<double>(sum) * 1e-9;
  };
  EXPECT_NEAR(parameters("llama3-8b"), 8.03, 0.01);
  EXPECT_NEAR(parameters("llama3-405b"), 405.9, 0.1);
  EXPECT_NEAR(parameters("deepseek-v3"), 671 + 11.6, 1)
      << "includes the layer for multi-token prediction";
}

}  // namespace
}  // namespace reprise::cli
