#pragma once
// The lies of the field that names and the common state betray: a save that exits 0 and leaves out
// what the next load needs. Pure.

#include "core/engine/finding.hpp"
#include "core/state/catalog.hpp"
#include "core/state/modules.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// The shards of each object form its whole grid; missing coordinates are named.
Findings check_grids(const Catalog& catalog);

/// A common state that says that a fault is pending (rerun_state_machine.state is
/// WILL_RERUN_FROM_CHECKPOINT) needs the `rerun_state_machine_state` objects of the ranks.
Findings check_rerun(const Value& common, const Catalog& catalog);

/// Of a checkpoint of several modules, by its keys and by what args['modules'] says of them:
///
/// - whoever stores optimizer state stores its param groups, for each optimizer of a chain; the
/// grad
///   scaler and the sharding type if any other does, and the sharding type where the state is in
///   buckets. Where a distributed optimizer keeps groups and scaler itself, each of its
///   data-parallel groups does (`optimizer.distributed.dp_group_idx_<g>.optimizer`)
///   Groups of several modules under keys that tell no module are a warning
/// - a chain has no gap
/// - a module that args name has something stored, and the other way round
/// - where one module has random states, all have; on the grid that args say
Findings check_modules(const StoredModules& modules);

/// A sharding type, as far as it is known, fits the keys of the state and what args say of it.
Findings check_sharding_types(const StoredModules& modules);

}  // namespace reprise
