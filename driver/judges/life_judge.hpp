#pragma once
// Compares the records of all ranks of one life with each other. Pure.

#include "driver/record/record.hpp"
#include "properties/finding.hpp"

namespace reprise::driver {

/// Checks the ranks of a life against each other. Findings, those of saves first:
///
///   FALSE_REPLICA, MULTI_WRITER, NO_WRITER, COMMON_STATE_DIVERGES
///                          the replicas passed to a save are wrong; failed saves are judged, too
///   KEYSET_ASYMMETRY       the ranks saved or requested other keys than the checkpoint has,
///                          or no rank has a tensor of the uninterrupted job
///   STALE_PLAN             the ranks saved other keys than the checkpoint has, because the save
///                          reused a plan
///   MIXED_GENERATION       ranks loaded different checkpoints
///   READ_TWICE             payload was read twice, though the scenario requires one read
///   VERDICT_DISAGREEMENT   ranks disagree on how a save ended
Findings judge_life(const LifeRecord& life);

/// True if a planned fault kept this rank out of a collective: the call failed, or came after the
/// deadline. This ends the life of the job.
bool failed_its_peers(const RankRecord& rank);

}  // namespace reprise::driver
