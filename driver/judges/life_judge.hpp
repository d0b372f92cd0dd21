#pragma once
// Judges one incarnation by the records of all its ranks together. Pure.

#include "driver/record/record.hpp"
#include "properties/ruling.hpp"

namespace reprise::driver {

/// Checks, over all ranks:
///
///   replicas at each save, even a failed one (FALSE_REPLICA, MULTI_WRITER, NO_WRITER,
///     COMMON_STATE_DIVERGES)
///   that the ranks request all keys of the checkpoint, and each tensor is on some rank
///     (KEYSET_ASYMMETRY)
///   that the checkpoint holds the live state of its save (STALE_PLAN if a plan was reused)
///   that all ranks load one checkpoint (MIXED_GENERATION)
///   that payload is read only once, if the scenario requires it (READ_TWICE)
///   that the ranks agree on how each save ended (VERDICT_DISAGREEMENT)
Rulings judge_life(const IncarnationRecord& life);

/// True if a planned fault kept this rank out of a collective: the call failed, or came after the
/// deadline. This ends the life of the job.
bool failed_its_peers(const RankRecord& rank);

}  // namespace reprise::driver
