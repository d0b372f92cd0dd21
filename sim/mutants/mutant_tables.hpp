#pragma once
// Declares the mutants, in one table per subject. Each table is sorted by name and defined at the
// end of a wrong_*.cpp, below the functions that it uses. mutants.hpp has all mutants in one list.

#include <span>

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Returns the mutants that hear some ranks where all must agree.
std::span<const Mutant> agreement_mutants();
/// Returns the mutants of background saves: those that write state after the job has already
/// changed it, and those that end a save wrongly.
std::span<const Mutant> async_mutants();
/// Returns the mutants of caches that are used by several saves or loads.
std::span<const Mutant> cache_mutants();
/// Returns the mutants of the commit, the tracker and the removal of checkpoints. They run steps in
/// a wrong order or on the wrong ranks, or choose the wrong checkpoint.
std::span<const Mutant> commit_mutants();
/// Returns the mutants that describe a rank's part of the state with wrong keys, global shapes or
/// boxes.
std::span<const Mutant> description_mutants();
/// Returns the mutants that take groups from the wrong source, or use a global rank or a rank in
/// one group as if it were a rank in another group.
std::span<const Mutant> group_mutants();
/// Returns the mutants of a load: wrong requests, missing refusals, and wrong steps from loaded
/// state to the next iteration.
std::span<const Mutant> load_mutants();
/// Returns the mutants that allocate more memory than a save or load should.
std::span<const Mutant> memory_mutants();
/// Returns the mutants of jobs whose modules have their own ranks. Such a mutant lets the wrong
/// rank write the settings of a module's optimizer, writes them under the wrong key, or lets the
/// wrong ranks decide whether a step is made.
std::span<const Mutant> module_mutants();
/// Returns the mutants that give a rank a wrong copy index, so that wrong ranks are elected as
/// writers.
std::span<const Mutant> replica_mutants();
/// Returns the mutants of the rerun machine.
std::span<const Mutant> rerun_mutants();
/// Returns the mutants that describe shards wrongly in a save.
std::span<const Mutant> save_mutants();
/// Returns the mutants that leave parts of the job's state out of a checkpoint.
std::span<const Mutant> state_mutants();
/// Returns the mutants that treat an object store as a file system.
std::span<const Mutant> store_mutants();
/// Returns the mutants that declare different state as equal copies, or leave some state without a
/// writer.
std::span<const Mutant> training_mutants();
/// Returns the mutants of reshard and diff: what they lose, and what they call the same.
std::span<const Mutant> verb_mutants();

}  // namespace reprise::sim
