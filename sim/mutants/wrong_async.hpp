#pragma once
// Wrong decisions about the job's rights during a save, and about the end of that save.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Uses the tensor itself as its snapshot.
void alias_host_tensors(Policies& policies);
/// The background waits for the copies into staging, but the job does not.
void go_on_while_staging(Policies& policies);
/// Writes a batch before its copies are complete.
void write_while_staging(Policies& policies);
/// Reuses a batch's memory before it is written.
void reuse_staging_early(Policies& policies);
/// Names in the tracker the job's step at the end of the save.
void name_live_step(Policies& policies);
/// Nobody polls a save during training: the next save or the end of the job commits it.
void never_poll(Policies& policies);
/// Abandons saves in flight when the job ends.
void exit_at_once(Policies& policies);
/// Saves tensors from their first addresses.
void keep_handles(Policies& policies);

}  // namespace reprise::sim
