#pragma once

#include "reprise/fabric.hpp"

namespace reprise {

/// Returns the rank of the group's first member.
GroupRank first_member(const Communicator& group);

struct LeaderSeams {
  /// Returns the rank that this rank considers the group's leader. The leader does the work, and
  /// all other ranks use its result.
  GroupRank (*leader)(const Communicator& group) = first_member;
};

}  // namespace reprise
