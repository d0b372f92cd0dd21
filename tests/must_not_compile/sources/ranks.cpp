// Mixes kinds of numbers that must not be mixed. With MIX_UP defined, each line in the second part
// is a separate error; otherwise the file compiles.

#include "core/agree/leader.hpp"
#include "reprise/mesh.hpp"
#include "sim/job/groups/groups.hpp"

namespace reprise {

GlobalRank leader_by_global_rank(const Communicator& group);

void right(const Group& group, const Mesh& mesh, Communicator& all,
           const sim::CheckpointGroups& groups, GlobalRank global, GroupRank local) {
  group.rank_of(global);
  group.member(local);
  group.member({group.size() - 1});
  mesh.coordinate(local, "tp");
  all.broadcast(local, {});
  static_cast<void>(local == *group.rank_of(global));
  local = GroupRank{global.value};  // an explicit conversion is allowed
  static_cast<void>(LeaderSeams{.leader = first_member});
  sim::rank_in(groups.tp, global);
  sim::place_in(mesh, groups, global);
}

#ifdef MIX_UP
void mixed_up(const Group& group, const Mesh& mesh, Communicator& all,
              const sim::CheckpointGroups& groups, GlobalRank global, GroupRank local) {
  group.rank_of(local);                // WRONG: takes a global rank
  group.member(global);                // WRONG: takes a group rank
  group.member(group.size());          // WRONG: takes a rank, not a size
  mesh.coordinate(global, "tp");       // WRONG: takes a group rank
  all.broadcast(global, {});           // WRONG: the root is a group rank
  static_cast<void>(local == global);  // WRONG: different kinds of ranks
  local = global;                      // WRONG: different kinds of ranks
  static_cast<void>(LeaderSeams{.leader = leader_by_global_rank});  // WRONG: not a group rank
  sim::rank_in(groups.tp, local);                                   // WRONG: takes a global rank
  sim::place_in(mesh, groups, local);                               // WRONG: takes a global rank
  const std::int32_t number = sim::rank_in(groups.tp, global);      // WRONG: a rank is no number
}
#endif

}  // namespace reprise
