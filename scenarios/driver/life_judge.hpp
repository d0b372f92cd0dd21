#pragma once
// What shows only where the records of all ranks of one incarnation lie side by side. Pure.

#include "properties/ruling.hpp"
#include "scenarios/driver/record.hpp"

namespace reprise::driver {

/// Replicas at each save (FALSE_REPLICA, MULTI_WRITER, NO_WRITER, COMMON_STATE_DIVERGES), also of a
/// save that failed afterwards; keys requested by all ranks together against those in the
/// checkpoint, and tensors that no rank has (KEYSET_ASYMMETRY); what was live at a save against
/// what the checkpoint holds then (STALE_PLAN where a plan was reused); one checkpoint for all
/// ranks (MIXED_GENERATION), payload read once where that is asked for (READ_TWICE), one ending of
/// each save (VERDICT_DISAGREEMENT).
Rulings judge_life(const IncarnationRecord& life);

/// A planned fault kept this rank from a collective: the call failed, or it came when the deadline
/// was over. The job's life ends by that.
bool failed_its_peers(const RankRecord& rank);

}  // namespace reprise::driver
