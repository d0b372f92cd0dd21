#pragma once
// The process groups that a save or a load is given, each an ordered list of global ranks. Nobody
// asks global state for them; see group_registry.hpp for callers that have none to give.

#include <array>
#include <bitset>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/group_claims.hpp"
#include "reprise/mesh.hpp"
#include "sim/job/layout.hpp"

namespace reprise::sim {

/// What a caller hands over: its own groups, as far as it has them.
struct CheckpointGroups {
  std::optional<Group> tp;
  std::optional<Group> pp;
  std::optional<Group> dp_cp;
  std::optional<Group> dp;
  std::optional<Group> expt_dp;
  /// Of the experts, whose tensors and stages may be dealt out otherwise (ours); a model without
  /// experts needs none of them, nor expt_dp.
  std::optional<Group> ep = {};
  std::optional<Group> expt_tp = {};
  std::optional<Group> expt_pp = {};
  std::string rng_prefix = {};  ///< of the keys of random states: "mimo.vision."

  friend bool operator==(const CheckpointGroups&, const CheckpointGroups&) = default;
};

/// Of each module of which a rank has a part, in the job's order; one of a job that is one model.
using JobGroups = std::vector<CheckpointGroups>;

struct GroupName {
  std::string_view argument;  ///< "tp_group"
  std::optional<Group> CheckpointGroups::*group;
  bool of_experts = false;
};

inline constexpr std::array<GroupName, 8> kGroupNames = {
    GroupName{"tp_group", &CheckpointGroups::tp},
    GroupName{"pp_group", &CheckpointGroups::pp},
    GroupName{"dp_cp_group", &CheckpointGroups::dp_cp},
    GroupName{"dp_group", &CheckpointGroups::dp},
    GroupName{"expt_dp_group", &CheckpointGroups::expt_dp, true},
    GroupName{"ep_group", &CheckpointGroups::ep, true},
    GroupName{"expt_tp_group", &CheckpointGroups::expt_tp, true},
    GroupName{"expt_pp_group", &CheckpointGroups::expt_pp, true}};

/// Some of these, by their places.
using GroupSet = std::bitset<kGroupNames.size()>;
inline constexpr GroupSet kAllGroups{(1U << kGroupNames.size()) - 1};
/// USAGE with those that there are, if one of the arguments names none.
GroupSet groups_named(std::span<const std::string> arguments);
std::vector<std::string_view> arguments_of(const GroupSet& groups);

/// Those of one rank of a job, from the meshes that its tensors are cut by; data-parallel ones run
/// over cp first, then over the sharing ranks, then over their copies.
CheckpointGroups groups_of(const Mesh& dense, const Mesh& experts, GlobalRank rank);

/// Rank within a group, asked of the group. LAYOUT_MISMATCH naming rank and group if it is none of
/// its members, or there is no such group.
GroupRank rank_in(const std::optional<Group>& group, GlobalRank self);

/// Where groups say that a rank stands in a mesh of dense tensors or of experts, all of it or some
/// of its pipeline stages: each coordinate is the rank within the group along that axis.
/// LAYOUT_MISMATCH if a group has not the size that the mesh has there, or does not hold the rank.
GroupRank place_in(const Mesh& mesh, const CheckpointGroups& groups, GlobalRank self);

/// What the groups are, and what the meshes say that they be, for all ranks to compare; `module`
/// is before their names.
std::vector<GroupClaim> claims_of(const CheckpointGroups& groups, const CheckpointGroups& laid_out,
                                  const std::string& module = {});

/// Which groups a job hands to its saves and loads: its own, but for those that it lacks.
struct GroupSource {
  GroupSet lacks = {};

  static const GroupSource kExplicit;  ///< all
  static const GroupSource kFallback;  ///< none, as callers from before groups were arguments
  static const GroupSource kHalf;      ///< the tensor-parallel group alone

  friend bool operator==(const GroupSource&, const GroupSource&) = default;
};
inline constexpr GroupSource GroupSource::kExplicit{};
inline constexpr GroupSource GroupSource::kFallback{kAllGroups};
inline constexpr GroupSource GroupSource::kHalf{GroupSet{(1U << kGroupNames.size()) - 2}};

}  // namespace reprise::sim
