#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "core/base/codes.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/held_by.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

using Axes = std::initializer_list<std::string_view>;

/// Returns the replica id that the rank would have if its coordinate along each axis in `axes` were
/// 0. Ranks that differ only in these coordinates get the same id.
std::int32_t replica_without(const Placement& placement, const Mesh& mesh, GroupRank member,
                             std::span<const std::string_view> axes) {
  std::vector<std::int32_t> coordinates;
  for (AxisIndex a = 0; a < mesh.axes().size(); ++a) {
    const bool dropped = std::find(axes.begin(), axes.end(), mesh.axes()[a].name) != axes.end();
    coordinates.push_back(dropped ? 0 : mesh.coordinate(member, a));
  }
  return placement.replica(mesh, mesh.member_at(coordinates));
}

std::int32_t replica_without_tp(const Placement& placement, const Mesh& mesh, GroupRank member) {
  return replica_without(placement, mesh, member, Axes{"tp"});
}

const Registration kReplicaZeroAxisTp({
    "replica-zero-axis/tp",
    "The replica id ignores the tensor-parallel rank, so every replica of a tensor that tp "
    "replicates counts as the main one.",
    "JobPolicy::replica",
    "tp 2",
    {Code::kMultiWriter},
    [](Policies& policies) { policies.job.replica = asked<replica_without_tp>; },
});

std::int32_t replica_without_pp(const Placement& placement, const Mesh& mesh, GroupRank member) {
  return replica_without(placement, mesh, member, Axes{"pp"});
}

const Registration kReplicaZeroAxisPp({
    "replica-zero-axis/pp",
    "The replica id ignores the pipeline rank, so all replicas of a shared embedding count as "
    "the main one.",
    "JobPolicy::replica",
    "moe-tiny-mtp, pp 2",
    {Code::kMultiWriter},
    [](Policies& policies) { policies.job.replica = asked<replica_without_pp>; },
});

std::int32_t replica_without_cp(const Placement& placement, const Mesh& mesh, GroupRank member) {
  return replica_without(placement, mesh, member, Axes{"cp"});
}

const Registration kReplicaZeroAxisCp({
    "replica-zero-axis/cp",
    "The replica id ignores the context-parallel rank, so every replica counts as the main one.",
    "JobPolicy::replica",
    "cp 2, replicated weights",
    {Code::kMultiWriter},
    [](Policies& policies) { policies.job.replica = asked<replica_without_cp>; },
});

constexpr std::array<std::string_view, 4> kDataAxes = {"dp_shard", "dp_replicate", "edp_shard",
                                                       "edp_replicate"};

std::int32_t replica_without_dp(const Placement& placement, const Mesh& mesh, GroupRank member) {
  return replica_without(placement, mesh, member, kDataAxes);
}

const Registration kReplicaZeroAxisDp({
    "replica-zero-axis/dp",
    "The replica id ignores the data-parallel rank, so every replica counts as the main one.",
    "JobPolicy::replica",
    "dp 2 with replicated weights, or dp_replicate 2",
    {Code::kMultiWriter},
    [](Policies& policies) { policies.job.replica = asked<replica_without_dp>; },
});

std::int32_t rank_in_dp(const Placement& placement, const Mesh& mesh, GroupRank member) {
  std::vector<std::string_view> copies(kDataAxes.begin(), kDataAxes.end());
  for (const Split& split : placement.splits()) std::erase(copies, split.axis);
  const Group group = mesh.group_along(member, copies);
  return group.rank_of(mesh.members().member(member))->value;
}

const Registration kReplicaGroupTooSmall({
    "replica-group-too-small",
    "Replica ids are ranks in the data-parallel group, which leaves out other axes along which "
    "a tensor is replicated.",
    "JobPolicy::replica",
    "cp 2, or tp 2 for tensors that tp replicates; replicated weights",
    {Code::kMultiWriter},
    [](Policies& policies) { policies.job.replica = asked<rank_in_dp>; },
});

/// Uses the dense mesh to compute the copy indices of experts' weights. Optimizer shares keep their
/// copy indices, because they have groups of their own.
Description by_dense_group(const Holding& holding) {
  Description description = describe(holding);
  if (holding.spec.mesh == MeshKind::kExpert && holding.shares.empty()) {
    const Placement parts({{"tp", 0}, {"pp", 1}});
    description.replica = parts.replica(dense_mesh(holding.layout), in_world(holding));
  }
  return description;
}

const Registration kWriterFromGlobalGroups({
    "writer-from-global-groups",
    "The main replicas of experts are elected in the data-parallel group of the dense tensors.",
    "JobPolicy::described_save",
    "moe-tiny, ep 2, replicated weights",
    {Code::kNoWriter},
    [](Policies& policies) { policies.job.described_save = asked<by_dense_group>; },
});

/// Returns a number to add to the replica id: the rank's pp coordinate plus, if tp does not split
/// the tensor, its tp coordinate. If the number is above 0, the rank never holds the main copy.
std::int32_t further_copies(const Holding& holding) {
  const Mesh& mesh = *holding.mesh;
  const auto& splits = holding.placement.splits();
  const bool cut = std::any_of(splits.begin(), splits.end(),
                               [](const Split& split) { return split.axis == "tp"; });
  return mesh.coordinate(holding.member, "pp") + (cut ? 0 : mesh.coordinate(holding.member, "tp"));
}

Description by_expert_group(const Holding& holding) {
  Description description = describe(holding);
  if (holding.spec.mesh == MeshKind::kDense && holding.shares.empty()) {
    const Placement parts({{"etp", 0}, {"ep", 1}, {"pp", 2}});
    description.replica =
        parts.replica(expert_mesh(holding.layout), in_world(holding)) + further_copies(holding);
  }
  return description;
}

const Registration kLegacyTpGtEp({
    "legacy-tp-gt-ep",
    "Only ranks with expert-data-parallel rank 0 write. If TP is larger than EP x ETP, some "
    "shards of the dense tensors have no such rank and are not saved.",
    "JobPolicy::described_save",
    "tp 2, etp 1, replicated weights",
    {Code::kMultiWriter, Code::kNoWriter},
    [](Policies& policies) { policies.job.described_save = asked<by_expert_group>; },
});

Description with_stage_in_replica(const Holding& holding) {
  Description description = describe(holding);
  description.replica = holding.replica * holding.layout.pp + stage_of_rank(holding);
  return description;
}

const Registration kPpInReplicaId({
    "pp-in-replica-id",
    "The pipeline rank is part of the replica id, so tensors on later stages count as extra "
    "replicas and nobody writes them.",
    "JobPolicy::described_save",
    "pp 2",
    {Code::kNoWriter},
    [](Policies& policies) { policies.job.described_save = asked<with_stage_in_replica>; },
});

}  // namespace
}  // namespace reprise::sim
