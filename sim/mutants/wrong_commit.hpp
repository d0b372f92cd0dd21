#pragma once
// Save protocols in a wrong order, or with wrong counts: commit, tracker,
// retention.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Writes the tracker before the checkpoint's payload is in place.
void tracker_before_payload(Policies& policies);
/// Writes the tracker when the save is scheduled.
void tracker_at_schedule(Policies& policies);
/// Every rank leaves the tracker to another one.
void tracker_by_nobody(Policies& policies);
/// Every rank writes the tracker.
void tracker_by_all(Policies& policies);

/// Removes old checkpoints before the new one is durable: when the commit begins; when scheduled.
void remove_before_durable(Policies& policies);
/// Removes the old checkpoint of the same step before the new one is in its place.
void remove_same_step_first(Policies& policies);
void remove_at_schedule(Policies& policies);
/// Keeps the checkpoints with the highest numbers in their names, finished or not.
void count_unfinished(Policies& policies);
/// Counts a checkpoint that a load has just rejected as damaged.
void count_damaged(Policies& policies);

/// Each rank chooses a fallback from its own view of the store.
void choose_alone(Policies& policies);

}  // namespace reprise::sim
