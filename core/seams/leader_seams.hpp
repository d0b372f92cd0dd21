#pragma once

#include "reprise/fabric.hpp"

namespace reprise {

/// Returns the group's first rank.
GroupRank first_member(const Communicator& group);

struct LeaderSeams {
  /// Returns the rank that acts for the group, as the caller sees it: it does the work, and the
  /// others take its answer.
  GroupRank (*leader)(const Communicator& group) = first_member;
};

}  // namespace reprise
