#pragma once
// Checks that all ranks agree on their process groups before anything relies on them.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/agree/agreement.hpp"

namespace reprise {

/// A rank's view of one group it works with.
struct GroupClaim {
  std::string name;  ///< "tp_group"; the same on all ranks
  Group group;
  /// The same group according to the rank's metadata, the meshes that cut its tensors.
  Group laid_out;

  friend bool operator==(const GroupClaim&, const GroupClaim&) = default;
};

struct GroupIdeas {
  GlobalRank rank;
  std::vector<GroupClaim> claims;

  friend bool operator==(const GroupIdeas&, const GroupIdeas&) = default;
};

/// Throws LAYOUT_MISMATCH naming rank, group and both views, for the first rank in the given order
/// with a group that
///   - differs from the metadata: another size, other members or another order,
///   - does not contain the rank itself, or contains a rank that takes no part, or
///   - is listed differently by one of its members, or is unknown to it.
void judge_groups(std::span<const GroupIdeas> ideas);

/// Collective over the ranks that save or load. Returns the claims of each, by group rank. If
/// `claims` fails on one rank, all ranks fail.
std::vector<GroupIdeas> gather_groups(Communicator& group,
                                      const std::function<std::vector<GroupClaim>()>& claims);

}  // namespace reprise
