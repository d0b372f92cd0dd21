#pragma once
// Defines the process groups that are passed to a save or a load. A group is an ordered list of
// global ranks. Only group_registry.hpp reads groups from global state; it serves callers that pass
// no groups.

#include <array>
#include <bitset>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/agree/group_claims.hpp"
#include "reprise/mesh.hpp"
#include "sim/job/groups/layout.hpp"

namespace reprise::sim {

/// The groups that a caller passes to a save or a load. Groups that are not passed are empty.
struct CheckpointGroups {
  std::optional<Group> tp;
  std::optional<Group> pp;
  std::optional<Group> dp_cp;
  std::optional<Group> dp;
  std::optional<Group> expt_dp;
  /// Groups of the experts. The distribution of experts over ranks and stages may differ from that
  /// of dense tensors (our extension). A model without experts needs neither these groups nor
  /// expt_dp.
  std::optional<Group> ep = {};
  std::optional<Group> expt_tp = {};
  std::optional<Group> expt_pp = {};
  std::string rng_prefix = {};  ///< prefix of random states' keys, such as "mimo.vision."

  friend bool operator==(const CheckpointGroups&, const CheckpointGroups&) = default;
};

/// Groups of a rank's modules, in the order of the job's modules. A job that is one model has one
/// entry.
using JobGroups = std::vector<CheckpointGroups>;

struct GroupName {
  std::string_view argument;  ///< name of the argument, such as "tp_group"
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

/// A set of groups; bit i stands for kGroupNames[i].
using GroupSet = std::bitset<kGroupNames.size()>;
inline constexpr GroupSet kAllGroups{(1U << kGroupNames.size()) - 1};
/// Returns the groups with these argument names. If a name is unknown, throws USAGE and lists the
/// known names.
GroupSet groups_named(std::span<const std::string> arguments);
std::vector<std::string_view> arguments_of(const GroupSet& groups);

/// Returns the groups of one rank of a job, from the meshes that divide its tensors. In
/// data-parallel groups, cp varies fastest, then dp_shard or edp_shard, then dp_replicate or
/// edp_replicate.
CheckpointGroups groups_of(const Mesh& dense, const Mesh& experts, GlobalRank rank);

/// Returns the rank's index within the group. Throws LAYOUT_MISMATCH, with rank and group, if the
/// rank is not a member or if `group` is empty.
GroupRank rank_in(const std::optional<Group>& group, GlobalRank self);

/// Returns a rank's index in a mesh. Computes it from the rank's groups: the rank's position in the
/// group along an axis is its coordinate on that axis. The mesh may be that of dense tensors, of
/// experts, or of some pipeline stages. Throws LAYOUT_MISMATCH if a group's size differs from the
/// axis, or the group does not contain the rank.
GroupRank place_in(const Mesh& mesh, const CheckpointGroups& groups, GlobalRank self);

/// Pairs each group in `groups` with the group of the same name in `laid_out`, which was derived
/// from the meshes. All ranks can then compare the pairs. In each pair, the name begins with
/// `module`.
std::vector<GroupClaim> claims_of(const CheckpointGroups& groups, const CheckpointGroups& laid_out,
                                  const std::string& module = {});

/// Selects which of the job's own groups are passed to its saves and loads.
struct GroupSource {
  GroupSet lacks = {};

  static const GroupSource kExplicit;  ///< all groups
  static const GroupSource kFallback;  ///< no groups, as in old callers without such arguments
  static const GroupSource kHalf;      ///< only the tensor-parallel group

  friend bool operator==(const GroupSource&, const GroupSource&) = default;
};
inline constexpr GroupSource GroupSource::kExplicit{};
inline constexpr GroupSource GroupSource::kFallback{kAllGroups};
inline constexpr GroupSource GroupSource::kHalf{GroupSet{(1U << kGroupNames.size()) - 2}};
/// Returns "explicit", "fallback" or "half"; "other" for any other choice of groups.
std::string_view name_of(const GroupSource& source);

}  // namespace reprise::sim
