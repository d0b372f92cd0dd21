#include "sim/mutants/wrong_replica.hpp"

#include <algorithm>
#include <array>

#include "sim/mutants/asked.hpp"
#include "sim/mutants/held_by.hpp"

namespace reprise::sim {
namespace {

using Axes = std::initializer_list<std::string_view>;

constexpr std::array<std::string_view, 4> kDataAxes = {"dp_shard", "dp_replicate", "edp_shard",
                                                       "edp_replicate"};

/// Returns the replica id as if the axes had one coordinate.
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
std::int32_t replica_without_pp(const Placement& placement, const Mesh& mesh, GroupRank member) {
  return replica_without(placement, mesh, member, Axes{"pp"});
}
std::int32_t replica_without_cp(const Placement& placement, const Mesh& mesh, GroupRank member) {
  return replica_without(placement, mesh, member, Axes{"cp"});
}
std::int32_t replica_without_dp(const Placement& placement, const Mesh& mesh, GroupRank member) {
  return replica_without(placement, mesh, member, kDataAxes);
}

std::int32_t rank_in_dp(const Placement& placement, const Mesh& mesh, GroupRank member) {
  std::vector<std::string_view> copies(kDataAxes.begin(), kDataAxes.end());
  for (const Split& split : placement.splits()) std::erase(copies, split.axis);
  const Group group = mesh.group_along(member, copies);
  return group.rank_of(mesh.members().member(member))->value;
}

/// For weights, which are held whole; the optimizer's shares have groups of their own.
Description by_dense_group(const Holding& holding) {
  Description description = describe(holding);
  if (holding.spec.mesh == MeshKind::kExpert && holding.shares.empty()) {
    const Placement parts({{"tp", 0}, {"pp", 1}});
    description.replica = parts.replica(dense_mesh(holding.layout), in_world(holding));
  }
  return description;
}

/// Declares copies along tp and pp as later copies: each rank's file keeps them, none is main.
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

Description with_stage_in_replica(const Holding& holding) {
  Description description = describe(holding);
  description.replica = holding.replica * holding.layout.pp + stage_of_rank(holding);
  return description;
}

}  // namespace

void drop_tp_from_replica(Policies& policies) { policies.job.replica = asked<replica_without_tp>; }
void drop_pp_from_replica(Policies& policies) { policies.job.replica = asked<replica_without_pp>; }
void drop_cp_from_replica(Policies& policies) { policies.job.replica = asked<replica_without_cp>; }
void drop_dp_from_replica(Policies& policies) { policies.job.replica = asked<replica_without_dp>; }
void count_copies_over_dp_alone(Policies& policies) { policies.job.replica = asked<rank_in_dp>; }

void elect_experts_by_dense_group(Policies& policies) {
  policies.job.described_save = asked<by_dense_group>;
}
void write_where_expert_dp_is_0(Policies& policies) {
  policies.job.described_save = asked<by_expert_group>;
}
void count_stages_as_copies(Policies& policies) {
  policies.job.described_save = asked<with_stage_in_replica>;
}

}  // namespace reprise::sim
