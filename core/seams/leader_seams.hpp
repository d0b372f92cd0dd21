#pragma once

#include "reprise/mesh.hpp"

namespace reprise {

/// Returns the group's first rank.
GroupRank first_member(const Group& group);
/// Returns `leader`: a collective takes its root as a rank within the group.
GroupRank root_in_group(const Group& group, GroupRank leader);

struct LeaderSeams {
  /// Returns the rank that acts for the group.
  GroupRank (*leader)(const Group&) = first_member;
  /// Returns the rank whose answer the others take.
  GroupRank (*root)(const Group&, GroupRank leader) = root_in_group;
};

}  // namespace reprise
