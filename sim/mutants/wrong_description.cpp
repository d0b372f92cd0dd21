#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "core/base/codes.hpp"
#include "properties/finding_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/held_by.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

// --- layer numbers ------------------------------------------------------------------------------

bool in_layer(const ParameterSpec& spec) { return spec.places.front().at == Place::At::kLayer; }

std::int32_t stage_of_layer(std::int64_t layer, const Holding& holding) {
  return stage_of(layer, holding.model.layers, holding.layout);
}

/// Returns "decoder.layers.2.<name>", where 2 is the layer's number within its stage.
std::string local_key(const ParameterSpec& spec, const Holding& holding) {
  const std::int64_t layer = spec.places.front().layer;
  const std::int32_t stage = stage_of_layer(layer, holding);
  std::int64_t local = 0;
  for (std::int64_t l = 0; l < layer; ++l) local += stage_of_layer(l, holding) == stage ? 1 : 0;
  const std::string number = "." + std::to_string(layer) + ".";
  std::string key = spec.key;
  return key.replace(key.find(number), number.size(), "." + std::to_string(local) + ".");
}

/// Returns the number of earlier stages that have a different tensor with that name.
std::int32_t stages_before(const std::string& key, const Holding& holding) {
  const std::int32_t own = stage_of_layer(holding.spec.places.front().layer, holding);
  std::int32_t count = 0;
  for (const auto& spec : holding.model.parameters) {
    if (!in_layer(spec) || stage_of_layer(spec.places.front().layer, holding) >= own) continue;
    if (local_key(spec, holding) == key) ++count;
  }
  return count;
}

Description with_local_layers(const Holding& holding) {
  Description description = describe(holding);
  if (!in_layer(holding.spec)) return description;
  description.key = local_key(holding.spec, holding);
  description.replica = holding.replica + stages_before(description.key, holding) *
                                              holding.placement.replicas(*holding.mesh);
  return description;
}

const Registration kPpFqnCollision({
    "pp-fqn-collision",
    "Each pipeline stage numbers its layers from 0. Different tensors get the same key, and "
    "only one of them is saved.",
    "JobPolicy::described_save, described_load",
    "pp 2",
    {judged::kFalseReplica},
    [](Policies& policies) {
      policies.job.described_save = asked<with_local_layers>;
      policies.job.described_load = asked<with_local_layers>;
    },
});

// --- experts ------------------------------------------------------------------------------------

/// Describes the tensor as "...experts.linear_fc1.weight3", where 3 is the expert's number within
/// its rank.
Description with_local_experts(const Holding& holding) {
  Description description = describe(holding);
  const auto& expert = holding.spec.expert;
  if (!expert) return description;
  const std::int32_t rank = expert_rank_of(*expert, holding.layout.ep);
  const std::int64_t first = ceil_chunk(expert->of, holding.layout.ep, rank).begin;
  const std::string number = std::to_string(expert->number);
  description.key.replace(description.key.size() - number.size(), number.size(),
                          std::to_string(expert->number - first));
  description.replica = holding.replica + rank * holding.placement.replicas(*holding.mesh);
  description.placed.reset();
  return description;
}

const Registration kExpertLocalNumber({
    "expert-local-number",
    "Each EP rank numbers its experts from 0. Different experts get the same key, and only one "
    "of them is saved.",
    "JobPolicy::described_save, described_load",
    "moe-tiny-experts, ep 2",
    {judged::kFalseReplica},
    [](Policies& policies) {
      policies.job.described_save = asked<with_local_experts>;
      policies.job.described_load = asked<with_local_experts>;
    },
});

/// Describes this rank's experts as if there were no others. The other ranks declare the same boxes
/// as copies.
Description without_ep(const Holding& holding) {
  Description description = describe(holding);
  const bool expert = holding.spec.mesh == MeshKind::kExpert;
  if (!expert || holding.mesh->axis_size("ep") == 1) return description;
  const std::int64_t first = holding.tensor.global.front().front().begin;
  description.shape[0] = holding.tensor.shape[0];
  for (Piece& piece : description.pieces) piece.box.offset[0] -= first;
  description.replica +=
      holding.mesh->coordinate(holding.member, "ep") * holding.placement.replicas(*holding.mesh);
  description.placed.reset();
  return description;
}

const Registration kEpPlacementFromParamMesh({
    "ep-placement-from-param-mesh",
    "Experts are described by their parameter's FSDP mesh, which has no EP axis. All EP ranks "
    "claim the same boxes of a tensor that is too small, and only one of them is kept.",
    "JobPolicy::described_save, described_load",
    "moe-tiny, ep 2",
    {judged::kFalseReplica, Code::kShapeDrift},
    [](Policies& policies) {
      policies.job.described_save = asked<without_ep>;
      policies.job.described_load = asked<without_ep>;
    },
});

const Registration kExpertMarkedReplicate({
    "expert-marked-replicate",
    "Experts sliced out of the stacked tensor are marked as replicas along EP, although each EP "
    "rank holds different experts.",
    "JobPolicy::described_save",
    "moe-tiny, ep 2",
    {judged::kFalseReplica},
    [](Policies& policies) { policies.job.described_save = asked<without_ep>; },
});

/// Adds a split along tp that the parameter does not have: the tp ranks' copies become shards,
/// stacked along dimension 0.
Description as_model_shard(const Holding& holding) {
  Description description = describe(holding);
  const std::int32_t tp = holding.mesh->axis("tp") ? holding.mesh->axis_size("tp") : 1;
  if (tp == 1 || !holding.spec.placement.splits().empty() || holding.spec.shape.empty()) {
    return description;
  }
  const std::int64_t rows = description.shape[0];
  description.shape[0] = rows * tp;
  for (Piece& piece : description.pieces) {
    piece.box.offset[0] += rows * holding.mesh->coordinate(holding.member, "tp");
  }
  auto splits = holding.placement.splits();
  splits.insert(splits.begin(), {"tp", 0});
  description.replica = Placement(splits).replica(*holding.mesh, holding.member);
  description.placed.reset();
  return description;
}

const Registration kReplicatedAsModelShard({
    "replicated-as-model-shard",
    "A replicated tensor is described on the model-parallel mesh instead of its parameter's "
    "own, so the replicas of the tensor-parallel ranks become shards of a larger tensor.",
    "JobPolicy::described_save, described_load",
    "tp 2, loaded under another tp",
    {Code::kShapeDrift},
    [](Policies& policies) {
      policies.job.described_save = asked<as_model_shard>;
      policies.job.described_load = asked<as_model_shard>;
    },
});

const PartitionRules& head_before_hc_head() {
  static const PartitionRules rules = [] {
    PartitionRules all = partition_rules();
    const auto hc_head = std::find_if(
        all.begin(), all.end(), [](const PartitionRule& rule) { return rule.part == "hc_head."; });
    std::rotate(hc_head, hc_head + 1, all.end());
    return all;
  }();
  return rules;
}

const Registration kEpPlacementFromParamMeshHcHead({
    "ep-placement-from-param-mesh/hc-head",
    "The name rule for 'head' is tried before the one for 'hc_head', so a replicated tensor is "
    "described as split.",
    "JobPolicy::names",
    "moe-tiny, tp 2",
    {Code::kMultiWriter},
    [](Policies& policies) { policies.job.names = asked<head_before_hc_head>; },
});

// --- shares -------------------------------------------------------------------------------------

/// Returns this rank's index among those ranks of its node that share the same optimizer state.
std::int32_t place_in_node(const Holding& holding) {
  constexpr std::array<std::string_view, 3> kSharing = {"cp", "dp_shard", "edp_shard"};
  const Group sharers = holding.mesh->group_along(holding.member, kSharing);
  const std::int32_t node = rank_of(holding).value / holding.ranks_per_node;
  std::int32_t before = 0;
  for (std::int32_t r = 0; r < holding.own.value; ++r) {
    if (sharers.member({r}).value / holding.ranks_per_node == node) ++before;
  }
  return before;
}

/// Returns as much of another rank's share as fits into this rank's share.
std::vector<Box> cut_to(const Holding& holding, const Share& other) {
  const std::int64_t room = elements_of(holding.boxes);
  if (room == 0 || other.boxes.empty()) return {};
  if (!holding.flat) return {{other.boxes.front().offset, holding.boxes.front().extent}};
  const Box whole = holding.tensor.whole();
  const std::int64_t begin = linear_index(other.boxes.front().offset, whole.extent);
  return boxes_of_range(whole, begin, begin + std::min(room, elements_of(other.boxes)));
}

Description of_place_in_node(const Holding& holding) {
  if (holding.ranks_per_node == 0 || holding.shares.empty()) return describe(holding);
  const auto place = static_cast<std::size_t>(place_in_node(holding));
  const std::vector<Box> boxes = cut_to(holding, holding.shares[place]);
  Holding wrong = holding;
  wrong.boxes = boxes;
  return describe(wrong);
}

const Registration kLocalRankAsDpRank({
    "local-rank-as-dp-rank",
    "The load requests shards by the rank's number within its node instead of its data-parallel "
    "rank.",
    "JobPolicy::described_load",
    "2 nodes, dp across both",
    {passed_on::kStaleDerived},
    [](Policies& policies) { policies.job.described_load = asked<of_place_in_node>; },
});

// --- boxes --------------------------------------------------------------------------------------

/// The local rows consist of k components, one after another. Splits the rows [begin, end) into k
/// almost equal parts, and describes each part as if it were the rows of one component.
LocalTensor with_even_components(const Holding& holding, Interval rows) {
  const std::size_t d = holding.spec.fused.dim;
  const std::int64_t k = holding.spec.fused.components;
  LocalTensor tensor = holding.tensor;
  for (std::int64_t c = 0; c < k; ++c) {
    Interval& part = tensor.global[d][static_cast<std::size_t>(c)];
    part = {part.begin + (rows.begin + c) / k, part.begin + (rows.end + c) / k};
  }
  tensor.shape[d] = rows.length();
  return tensor;
}

Description as_whole_components(const Holding& holding) {
  Description description = describe(holding);
  if (holding.spec.fused.components == 1 || holding.flat || holding.boxes.size() != 1) {
    return description;
  }
  Box box = holding.boxes.front();
  const std::size_t d = holding.spec.fused.dim;
  const LocalTensor wrong = with_even_components(holding, box.interval(d));
  box.offset[d] = 0;
  description.pieces = pieces_packed(wrong, {&box, 1});
  return description;
}

const Registration kFusedGateSplit({
    "fused-gate-split",
    "The rows of a rank are split into gate and up halves as if the rank held both components "
    "whole, although FSDP cuts inside them.",
    "JobPolicy::described_save, described_load",
    "moe-tiny, fsdp 2 on the fused dimension, loaded under another fsdp",
    {judged::kShiftedBytes},
    [](Policies& policies) {
      policies.job.described_save = asked<as_whole_components>;
      policies.job.described_load = asked<as_whole_components>;
    },
});

/// Describes a range with as many elements as the share, but lets it start at a row: the row where
/// this rank would start if whole rows were divided among the ranks.
Description as_rows(const Holding& holding) {
  if (!holding.flat || holding.shares.empty() || holding.tensor.shape.empty()) {
    return describe(holding);
  }
  const Box whole = holding.tensor.whole();
  const std::int64_t rows = whole.extent[0];
  const auto ranks = static_cast<std::int64_t>(holding.shares.size());
  const std::int64_t row = rows == 0 ? 0 : whole.elements() / rows;
  const std::int64_t begin = ceil_chunk(rows, ranks, holding.own.value).begin * row;
  const std::int64_t end = std::min(begin + elements_of(holding.boxes), whole.elements());
  std::vector<Box> boxes;
  if (begin < end) boxes = boxes_of_range(whole, begin, end);
  Holding wrong = holding;
  wrong.boxes = boxes;
  return describe(wrong);
}

void describe_flat_as_rows(Policies& policies) { policies.job.described_save = asked<as_rows>; }

const Registration kPackedGroupNotCanonical({
    "packed-group-not-canonical",
    "A rank's flattened shard is described as the chunk of rows that plain sharding would give "
    "it.",
    "JobPolicy::described_save",
    "fully_sharded_model_space, with rows that dp does not divide",
    {Code::kCoverageGap},
    describe_flat_as_rows,
});

std::optional<CoverDefect> always_covers(const Dims&, std::span<const Box>) { return {}; }

const Registration kValidationSkippedOrVacuous({
    "validation-skipped-or-vacuous",
    "The check that the described boxes tile the tensor accepts everything, including the wrong "
    "description of packed-group-not-canonical.",
    "JobPolicy::described_save, SaveSeams::plan.cover",
    "fully_sharded_model_space, with rows that dp does not divide",
    {Code::kCoverageGap, Code::kTrackerDangling},
    [](Policies& policies) {
      describe_flat_as_rows(policies);
      policies.save.plan.cover = asked<always_covers>;
    },
});

/// Lets an empty part begin where a full part would begin. If 512 is split into 30 parts of at most
/// 18, the last part is empty and then begins at 522.
Interval empty_as_if_full(std::int64_t length, std::int64_t parts, std::int64_t index) {
  const Interval chunk = ceil_chunk(length, parts, index);
  if (chunk.length() > 0) return chunk;
  const std::int64_t begin = index * ((length + parts - 1) / parts);
  return {begin, begin};
}

const Registration kEmptyShardDedup({
    "empty-shard-dedup",
    "The offset of an empty shard is computed as if the shard were full, so it lies outside the "
    "tensor.",
    "JobPolicy::slice, SaveSeams::plan.describe",
    "a ceil-chunk tail: 512 rows over 30 ranks, or 3 rows over 4",
    {Code::kExtentMismatch},
    [](Policies& policies) {
      policies.job.slice = asked<empty_as_if_full>;
      policies.save.plan.describe = asked<empty_as_if_full>;
    },
});

}  // namespace
}  // namespace reprise::sim
