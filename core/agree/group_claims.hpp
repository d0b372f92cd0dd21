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
/// has the rank, the group and both versions of its members. A group is faulty if it
/// - differs from the metadata in size, members or order,
/// - does not contain the rank itself, or contains a rank that takes no part, or
/// - is listed differently by one of its members, or is unknown to that member.
void judge_groups(std::span<const GroupIdeas> ideas);

/// Collective over the ranks that save or load. Returns the claims of each rank, by group rank. If
/// `claims` throws on one rank, all ranks throw.
std::vector<GroupIdeas> gather_groups(Communicator& group,
                                      const std::function<std::vector<GroupClaim>()>& claims);

}  // namespace reprise
