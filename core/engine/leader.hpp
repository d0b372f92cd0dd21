#pragma once
// What one rank of a group does for all: it commits, it reads the metadata. Leaders are ranks
// within their group; that a group need not hold global rank 0 is what the two types are for.

#include "core/engine/agreement.hpp"
#include "core/seams/leader_seams.hpp"

namespace reprise {

/// Collective. The leader runs `work`; all get what it gave. Fails alike on all ranks if the work
/// does, and with COLLECTIVE_MISMATCH if the leader is no member, or if another rank's answer is
/// taken than the leader's.
Bytes from_leader(Communicator& group, const LeaderSeams& seams,
                  const std::function<Bytes()>& work);

}  // namespace reprise
