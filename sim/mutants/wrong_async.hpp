#pragma once
// Wrong decisions on what a job may do while a save is in flight, and on how that save ends.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// The snapshot of a tensor is the tensor.
void alias_host_tensors(Policies& policies);
/// The background waits for the copies into staging, the job does not.
void go_on_while_staging(Policies& policies);
/// A batch is written before its copies are waited for.
void write_while_staging(Policies& policies);
/// A batch's memory is filled again although it was not written.
void reuse_staging_early(Policies& policies);
/// The tracker names the step at which the job is when a save ends.
void name_live_step(Policies& policies);
/// Nobody asks after a save while the job trains: the next one or the end of the job commits it.
void never_poll(Policies& policies);
/// What is in flight when the job ends is left to itself.
void exit_at_once(Policies& policies);
/// Tensors are saved from where they first stood.
void keep_handles(Policies& policies);

}  // namespace reprise::sim
