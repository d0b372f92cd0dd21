#pragma once

#include "reprise/mesh.hpp"

namespace reprise {

/// Returns the group's first rank.
GroupRank first_member(const Group& group);

struct LeaderSeams {
  /// Returns the rank that acts for the group.
  GroupRank (*leader)(const Group&) = first_member;
  /// Returns the rank whose answer the others take.
  GroupRank (*root)(const Group&) = first_member;
};

}  // namespace reprise
