#pragma once
// Runs work on one rank of a group, the leader, and gives the result to all ranks. Used for example
// to commit or to read metadata. Leaders are identified by group rank, because a group need not
// contain global rank 0.

#include "core/agree/agreement.hpp"
#include "core/seams/leader_seams.hpp"

namespace reprise {

/// Collective. The leader runs `work`, and all ranks get the result. If the work fails, all ranks
/// throw the same error. Throws COLLECTIVE_MISMATCH if the leader is not a member or if the ranks
/// choose different leaders.
Bytes from_leader(Communicator& group, const LeaderSeams& seams,
                  const std::function<Bytes()>& work);

}  // namespace reprise
