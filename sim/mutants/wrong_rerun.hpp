#pragma once
// Wrong decisions of the rerun machine.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Saves rerun objects only after a fault; `unsigned`: and uses a remembered plan for every later
/// save.
void emit_in_fault_alone(Policies& policies);
void emit_in_fault_alone_unsigned(Policies& policies);

/// Adds the rerun objects to checkpoints of every format.
void emit_in_any_format(Policies& policies);
/// Requests in a forced template only the objects that this job would save.
void force_by_format(Policies& policies);
/// Ignores missing objects that a forced template requests.
void force_unchecked(Policies& policies);
/// Treats no result as fatal, whichever rule rejects it.
void take_all_for_spikes(Policies& policies);
/// Restores a pending state although only weights are loaded.
void restore_from_releases(Policies& policies);
/// Requires wrapped iterators even between iterations, when nothing is read again.
void want_wrapped_iterators_always(Policies& policies);
/// Reports differences between results after each iteration.
void report_each_iteration(Policies& policies);

/// Requests the rerun objects only for a pending fault.
void ask_for_pending_alone(Policies& policies);

/// Saves the state in place after a fatal result that was not reproduced; `unguarded`: without the
/// check for states that can be persisted.
void save_in_place(Policies& policies);
void save_in_place_unguarded(Policies& policies);

/// Places the object by (pp, tp), and declares the other ranks there copies.
void place_by_parts(Policies& policies);

/// Prefers checkpoint to continue in place; prefers continue to restart-again from a checkpoint.
void swap_precedence(Policies& policies);

/// Does not restore the streams: none of them, or one kind; `before a fault save`: only
/// then.
void leave_streams_moved(Policies& policies);
void leave_device_streams_moved(Policies& policies);
void leave_tracker_streams_moved(Policies& policies);
void leave_streams_moved_before_fault_save(Policies& policies);

/// Reads the batch after a restart from the buffers and from the cursor; or from neither.
void read_batch_twice(Policies& policies);
void read_batch_never(Policies& policies);

/// Restores a pending state by rank, even if EP, CP or the rank order changed.
void restore_by_rank(Policies& policies);
/// Also restores if the machine is disabled.
void restore_although_disabled(Policies& policies);

/// Does not report that a restart repeats the restarts before it.
void restart_in_silence(Policies& policies);

}  // namespace reprise::sim
