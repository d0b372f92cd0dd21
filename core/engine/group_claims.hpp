#pragma once
// Whether all ranks mean the same by their process groups: asked before anything is built on them.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/agreement.hpp"

namespace reprise {

/// What a rank says of one group that it works with.
struct GroupClaim {
  std::string name;  ///< "tp_group"; the same on all ranks
  Group group;
  /// What the rank's metadata, the meshes by which its tensors are cut, say in its place.
  Group laid_out;

  friend bool operator==(const GroupClaim&, const GroupClaim&) = default;
};

struct GroupIdeas {
  GlobalRank rank;
  std::vector<GroupClaim> claims;

  friend bool operator==(const GroupIdeas&, const GroupIdeas&) = default;
};

/// Throws LAYOUT_MISMATCH naming rank, group and both ideas for the first, in the order given, of
/// whose groups one
///   - is not what the metadata say: another size, other members, another order,
///   - does not hold the rank itself, or holds a rank that has no part in this,
///   - is another list in the idea of one of its members, or unknown to it.
void judge_groups(std::span<const GroupIdeas> ideas);

/// Collective over the ranks that save or load. Returns what each says, by group rank. `claims` may
/// fail: then so do all ranks.
std::vector<GroupIdeas> gather_groups(Communicator& group,
                                      const std::function<std::vector<GroupClaim>()>& claims);

}  // namespace reprise
