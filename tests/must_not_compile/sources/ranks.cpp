// Kinds of numbers that must not be mixed. With MIX_UP each line below the first part is a separate
// error; without it the file compiles.

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
  local = GroupRank{global.value};  // in the open
  static_cast<void>(LeaderSeams{.leader = first_member});
  sim::rank_in(groups.tp, global);
  sim::place_in(mesh, groups, global);
}

#ifdef MIX_UP
void mixed_up(const Group& group, const Mesh& mesh, Communicator& all,
              const sim::CheckpointGroups& groups, GlobalRank global, GroupRank local) {
  group.rank_of(local);                                             // WRONG: not a global rank
  group.member(global);                                             // WRONG: not a position
  group.member(group.size());                                       // WRONG: a size
  mesh.coordinate(global, "tp");                                    // WRONG: not a place
  all.broadcast(global, {});                                        // WRONG: roots are of groups
  static_cast<void>(local == global);                               // WRONG: other spaces
  local = global;                                                   // WRONG: other spaces
  static_cast<void>(LeaderSeams{.leader = leader_by_global_rank});  // WRONG: leaders are of groups
  sim::rank_in(groups.tp, local);                                   // WRONG: asked by global rank
  sim::place_in(mesh, groups, local);                               // WRONG: asked by global rank
  const std::int32_t number = sim::rank_in(groups.tp, global);      // WRONG: a rank is no number
}
#endif

}  // namespace reprise
