#pragma once
// Wrong decisions of the rerun machine.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// A job saves its rerun objects in a fault alone; `unsigned`: and a plan that is remembered serves
/// every later save.
void emit_in_fault_alone(Policies& policies);
void emit_in_fault_alone_unsigned(Policies& policies);

/// Checkpoints of every format get the rerun objects.
void emit_in_any_format(Policies& policies);
/// A template that is forced asks only for what this job would save.
void force_by_format(Policies& policies);
/// Objects that a forced template asks for and the checkpoint has not are done without.
void force_unchecked(Policies& policies);
/// No result is fatal, whichever rule rejects it.
void take_all_for_spikes(Policies& policies);
/// A pending state is restored where weights alone are taken.
void restore_from_releases(Policies& policies);
/// Also between iterations, where nothing is read again, iterators must be wrapped.
void want_wrapped_iterators_always(Policies& policies);
/// How far results differ is told after each iteration.
void report_each_iteration(Policies& policies);

/// A load asks for the rerun objects of a pending fault alone.
void ask_for_pending_alone(Policies& policies);

/// A fatal result that was not reproduced leaves a checkpoint of the state in place; `unguarded`:
/// and nobody asks which states can be persisted.
void save_in_place(Policies& policies);
void save_in_place_unguarded(Policies& policies);

/// The object's place is (pp, tp), and the other ranks there are declared copies.
void place_by_parts(Policies& policies);

/// In place, checkpoint beats continue; from a checkpoint, continue beats restart-again.
void swap_precedence(Policies& policies);

/// The streams are not put back, none of them or one kind; `before a fault save`: only there they
/// are not.
void leave_streams_moved(Policies& policies);
void leave_device_streams_moved(Policies& policies);
void leave_tracker_streams_moved(Policies& policies);
void leave_streams_moved_before_fault_save(Policies& policies);

/// After a restart the batch is read from the buffers and from the cursor; or from neither.
void read_batch_twice(Policies& policies);
void read_batch_never(Policies& policies);

/// A pending state is restored by rank, whatever became of EP, CP and the order of ranks.
void restore_by_rank(Policies& policies);
/// ... and although the machine is disabled.
void restore_although_disabled(Policies& policies);

/// Nobody is told that a restart does what the restarts before it did.
void restart_in_silence(Policies& policies);

}  // namespace reprise::sim
