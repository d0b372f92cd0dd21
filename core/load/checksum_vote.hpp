#pragma once
// Judges the checksums that the ranks saw, jointly for all ranks.

#include "core/checkpoint/checksum_tally.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// Collective. Throws CHECKSUM if any rank saw a mismatch that is damage. It is no damage if the
/// counts of all ranks together show that the writer of the file had checksums switched off.
/// Returns true if that is the case for any file.
bool judge_checksums(Communicator& group, const ChecksumTally& mine);

}  // namespace reprise
