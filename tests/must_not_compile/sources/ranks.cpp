// Confuses types of numbers that must be kept apart. With MIX_UP defined, each line of the second
// part is an error; without it, the file compiles.

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
  group.rank_of(local);                // WRONG: expects a global rank
  group.member(global);                // WRONG: expects a group rank
  group.member(group.size());          // WRONG: expects a rank, not a size
  mesh.coordinate(global, "tp");       // WRONG: expects a group rank
  all.broadcast(global, {});           // WRONG: the root must be a group rank
  static_cast<void>(local == global);  // WRONG: different kinds of ranks
  local = global;                      // WRONG: different kinds of ranks
  static_cast<void>(LeaderSeams{.leader = leader_by_global_rank});  // WRONG: returns a global rank
  sim::rank_in(groups.tp, local);                                   // WRONG: expects a global rank
  sim::place_in(mesh, groups, local);                               // WRONG: expects a global rank
  const std::int32_t number = sim::rank_in(groups.tp, global);      // WRONG: a rank is not an int
}
#endif

}  // namespace reprise
