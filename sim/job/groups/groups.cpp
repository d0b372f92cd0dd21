#include "sim/job/groups/groups.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

/// An axis of a mesh, the group along this axis, and all axes that the group spans, fastest first.
struct Along {
  std::string_view axis;
  std::string_view argument;
  std::optional<Group> CheckpointGroups::*group;
  std::vector<std::string_view> axes;
};

/// Returns the group along each axis of the dense mesh. The dp_cp group has all ranks that hold
/// copies of one part; the dp group has only those along dp.
const std::vector<Along>& dense_axes() {
  using Groups = CheckpointGroups;
  static const std::vector<Along> all = [] {
    std::vector<Along> axes = {
        {"tp", "tp_group", &Groups::tp, {"tp"}},
        {"dp_shard", "dp_group", &Groups::dp, {"dp_shard", "dp_replicate"}},
        {"dp_replicate", "dp_group", &Groups::dp, {"dp_shard", "dp_replicate"}},
        {"pp", "pp_group", &Groups::pp, {"pp"}}};
    for (const auto axis : copy_axes()) {
      if (axis.starts_with("dp_")) continue;
      axes.push_back({axis, "dp_cp_group", &Groups::dp_cp, copy_axes()});
    }
    return axes;
  }();
  return all;
}

const std::vector<Along>& expert_axes() {
  using Groups = CheckpointGroups;
  static const std::vector<Along> all = {
      {"etp", "expt_tp_group", &Groups::expt_tp, {"etp"}},
      {"ep", "ep_group", &Groups::ep, {"ep"}},
      {"edp_shard", "expt_dp_group", &Groups::expt_dp, {"edp_shard", "edp_replicate"}},
      {"edp_replicate", "expt_dp_group", &Groups::expt_dp, {"edp_shard", "edp_replicate"}},
      {"pp", "expt_pp_group", &Groups::expt_pp, {"pp"}}};
  return all;
}

std::string text_of(const std::optional<Group>& group) {
  return group ? "{" + join(group->members(), " ") + "}" : "no group";
}

/// True if the mesh may have fewer ranks along this axis than the group. It may have only some
/// stages or only one expert's ranks.
bool may_be_part(std::string_view axis) { return axis == "pp" || axis == "ep"; }

/// Returns those members of a group that are in the mesh.
Group part_in(const Mesh& mesh, const Group& group) {
  std::vector<GlobalRank> members;
  for (const auto rank : group.members()) {
    if (mesh.members().rank_of(rank)) members.push_back(rank);
  }
  return Group(std::move(members));
}

std::int32_t coordinate_along(const Mesh& mesh, const Along& along, const CheckpointGroups& groups,
                              GlobalRank self) {
  const auto& whole = groups.*along.group;
  std::optional<Group> part;
  if (whole && may_be_part(along.axis) && whole->size() != mesh.axis_size(along.axis)) {
    part = part_in(mesh, *whole);
  }
  const auto& group = part ? part : whole;
  std::int32_t stride = 1;
  std::int32_t size = 1;
  for (const auto axis : along.axes) {
    if (axis == along.axis) stride = size;
    size *= mesh.axis_size(axis);
  }
  if (!group || group->size() != size) {
    throw Error(Code::kLayoutMismatch,
                "the " + std::string(along.argument) + " is " + text_of(group) +
                    " and the tensors are cut for " + std::to_string(size) + " ranks there",
                {.rank = self});
  }
  return rank_in(group, self).value / stride % mesh.axis_size(along.axis);
}

}  // namespace

GroupSet groups_named(std::span<const std::string> arguments) {
  GroupSet groups;
  for (const auto& argument : arguments) {
    const auto* const found =
        std::find_if(kGroupNames.begin(), kGroupNames.end(),
                     [&argument](const GroupName& name) { return name.argument == argument; });
    if (found == kGroupNames.end()) {
      throw Error(Code::kUsage, "there is no group '" + argument +
                                    "'; there are: " + join(arguments_of(kAllGroups), ", "));
    }
    groups.set(static_cast<std::size_t>(found - kGroupNames.begin()));
  }
  return groups;
}

std::vector<std::string_view> arguments_of(const GroupSet& groups) {
  std::vector<std::string_view> arguments;
  for (std::size_t g = 0; g < kGroupNames.size(); ++g) {
    if (groups.test(g)) arguments.push_back(kGroupNames.at(g).argument);
  }
  return arguments;
}

GroupRank rank_in(const std::optional<Group>& group, GlobalRank self) {
  const auto rank = group ? group->rank_of(self) : std::nullopt;
  if (rank) return *rank;
  throw Error(Code::kLayoutMismatch, "the rank is not a member of " + text_of(group),
              {.rank = self});
}

GroupRank place_in(const Mesh& mesh, const CheckpointGroups& groups, GlobalRank self) {
  const auto& known = mesh.axis("etp") ? expert_axes() : dense_axes();
  std::vector<std::int32_t> coordinates;
  coordinates.reserve(mesh.axes().size());
  for (const auto& axis : mesh.axes()) {
    const auto along = std::find_if(known.begin(), known.end(),
                                    [&](const Along& one) { return one.axis == axis.name; });
    CHECK(along != known.end(), axis.name);
    coordinates.push_back(coordinate_along(mesh, *along, groups, self));
  }
  return mesh.member_at(coordinates);
}

std::vector<GroupClaim> claims_of(const CheckpointGroups& groups, const CheckpointGroups& laid_out,
                                  const std::string& module) {
  std::vector<GroupClaim> claims;
  for (const auto& name : kGroupNames) {
    const auto& group = groups.*name.group;
    if (!group) continue;
    claims.push_back({module + std::string(name.argument), *group, (laid_out.*name.group).value()});
  }
  return claims;
}

CheckpointGroups groups_of(const Mesh& dense, const Mesh& experts, GlobalRank rank) {
  constexpr std::array<std::string_view, 2> kDp = {"dp_shard", "dp_replicate"};
  constexpr std::array<std::string_view, 2> kExptDp = {"edp_shard", "edp_replicate"};
  const GroupRank own = dense.members().rank_of(rank).value();
  CheckpointGroups groups;
  groups.tp = dense.group_along(own, "tp");
  groups.pp = dense.group_along(own, "pp");
  groups.dp_cp = dense.group_along(own, copy_axes());
  groups.dp = dense.group_along(own, kDp);
  groups.expt_dp = experts.group_along(own, kExptDp);
  groups.ep = experts.group_along(own, "ep");
  groups.expt_tp = experts.group_along(own, "etp");
  groups.expt_pp = experts.group_along(own, "pp");
  return groups;
}

std::string_view name_of(const GroupSource& source) {
  if (source == GroupSource::kExplicit) return "explicit";
  if (source == GroupSource::kFallback) return "fallback";
  return source == GroupSource::kHalf ? "half" : "other";
}

}  // namespace reprise::sim
