#pragma once
// What one rank of a group does for all: it commits, it reads the metadata. Leaders are ranks
// within their group; that a group need not hold global rank 0 is what the two types are for.

#include "core/engine/agreement.hpp"

namespace reprise {

/// The first of the group.
GroupRank first_member(const Group& group);
/// A collective takes its root as a rank within the group.
GroupRank root_in_group(const Group& group, GroupRank leader);

struct LeaderPolicy {
  GroupRank (*leader)(const Group&) = first_member;
  /// Whose answer the others take.
  GroupRank (*root)(const Group&, GroupRank leader) = root_in_group;
};

/// Collective. The leader runs `work`; all get what it gave. Fails alike on all ranks if the work
/// does, and with COLLECTIVE_MISMATCH if the leader is no member, or if another rank's answer is
/// taken than the leader's.
Bytes from_leader(Communicator& group, const LeaderPolicy& policy,
                  const std::function<Bytes()>& work);

}  // namespace reprise
