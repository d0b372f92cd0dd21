#pragma once
// Judges one incarnation by the records of all its ranks together. Pure.

#include "driver/record/record.hpp"
#include "properties/ruling.hpp"

namespace reprise::driver {

/// Checks replicas at each save, even one that failed (FALSE_REPLICA, MULTI_WRITER, NO_WRITER,
/// COMMON_STATE_DIVERGES); that all ranks together request the keys of the checkpoint, and no
/// tensor is without a rank (KEYSET_ASYMMETRY); that the checkpoint holds the live state of its
/// save (STALE_PLAN if a plan was reused); that all ranks load one checkpoint (MIXED_GENERATION),
/// read payload once if asked to (READ_TWICE), and agree on how each save ended
/// (VERDICT_DISAGREEMENT).
Rulings judge_life(const IncarnationRecord& life);

/// True if a planned fault kept this rank out of a collective: the call failed, or it came after
/// the deadline. That ends the life of the job.
bool failed_its_peers(const RankRecord& rank);

}  // namespace reprise::driver
