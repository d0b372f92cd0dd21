#include "sim/job/groups.hpp"

namespace reprise::sim {

CheckpointGroups groups_of(const Mesh& dense, const Mesh& experts, GlobalRank rank) {
  constexpr std::array<std::string_view, 3> kDpCp = {"cp", "dp_shard", "dp_replicate"};
  constexpr std::array<std::string_view, 2> kDp = {"dp_shard", "dp_replicate"};
  constexpr std::array<std::string_view, 2> kExptDp = {"edp_shard", "edp_replicate"};
  const GroupRank own = dense.members().rank_of(rank).value();
  CheckpointGroups groups;
  groups.tp = dense.group_along(own, "tp");
  groups.pp = dense.group_along(own, "pp");
  groups.dp_cp = dense.group_along(own, kDpCp);
  groups.dp = dense.group_along(own, kDp);
  groups.expt_dp = experts.group_along(own, kExptDp);
  groups.ep = experts.group_along(own, "ep");
  groups.expt_tp = experts.group_along(own, "etp");
  groups.expt_pp = experts.group_along(own, "pp");
  return groups;
}

}  // namespace reprise::sim
