#pragma once
// Checks that all ranks agree on their process groups before anything relies on them.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/agree/agreement.hpp"

namespace reprise {

/// The members of one process group, as one rank sees them.
struct GroupClaim {
  std::string name;  ///< such as "tp_group"; the same on all ranks
  Group group;
  /// The members that the group should have according to the meshes over which this rank's tensors
  /// are sharded.
  Group laid_out;

  friend bool operator==(const GroupClaim&, const GroupClaim&) = default;
};

struct GroupIdeas {
  GlobalRank rank;
  std::vector<GroupClaim> claims;

  friend bool operator==(const GroupIdeas&, const GroupIdeas&) = default;
};

/// Throws LAYOUT_MISMATCH for the first rank in the given order that has a faulty group. The error
/// has the rank, the group and both versions of its members. A rank's group is faulty if
/// - its size, its members or their order differ from the metadata,
/// - it does not contain the rank itself,
/// - it contains a rank that does not take part in the save or load, or
/// - one of its members does not know the group or lists other members for it.
void judge_groups(std::span<const GroupIdeas> ideas);

/// Collective over the ranks that save or load. Returns the claims of each rank, in the order of
/// the group's ranks. If `claims` throws on one rank, all ranks throw.
std::vector<GroupIdeas> gather_groups(Communicator& group,
                                      const std::function<std::vector<GroupClaim>()>& claims);

}  // namespace reprise
