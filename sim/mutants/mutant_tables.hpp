#pragma once
// Declares the mutants, in one table per subject. Each table is below its functions in a
// wrong_*.cpp and sorted by name; mutants.hpp has all mutants in one list.

#include <span>

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

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
/// Returns the mutants that take groups from the wrong source, or mistake a rank number in one
/// group or in the world for a rank number in another group.
std::span<const Mutant> group_mutants();
/// Returns the mutants of a load: wrong requests, missing refusals, and wrong steps from loaded
/// state to the next iteration.
std::span<const Mutant> load_mutants();
/// Returns the mutants that allocate more memory than a save or load should.
std::span<const Mutant> memory_mutants();
/// Returns the mutants of jobs whose modules have their own ranks. They concern which rank writes
/// the settings of a module's optimizer, under which key, and which ranks decide whether a step is
/// made.
std::span<const Mutant> module_mutants();
/// Returns the mutants that give a rank a wrong copy index, and so elect wrong writers.
std::span<const Mutant> replica_mutants();
/// Returns the mutants of the rerun machine.
std::span<const Mutant> rerun_mutants();
/// Returns the mutants that describe shards wrongly in a save.
std::span<const Mutant> save_mutants();
/// Returns the mutants that leave parts of the job's state out of a checkpoint.
std::span<const Mutant> state_mutants();
/// Returns the mutants that treat an object store as a file system.
std::span<const Mutant> store_mutants();
/// Returns the mutants that declare different state as equal copies, or leave state without a rank
/// that writes it.
std::span<const Mutant> training_mutants();

}  // namespace reprise::sim
