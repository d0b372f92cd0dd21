#pragma once
// Decides on all ranks together whether the checksum mismatches that the ranks saw are damage.

#include "core/checkpoint/checksum_tally.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// Collective. Adds up the counts of all ranks for each file. A mismatch is not damage if the
/// counts of its file show that the writer had checksums switched off. Throws CHECKSUM if any rank
/// saw a mismatch that is damage. Otherwise returns true if there were any mismatches.
bool judge_checksums(Communicator& group, const ChecksumTally& mine);

}  // namespace reprise
