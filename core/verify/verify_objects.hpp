#pragma once
// Detects known failures from names and common state: saves that exit with 0 but omit what the next
// load needs. Pure.

#include "core/checkpoint/finding.hpp"
#include "core/state/catalog.hpp"
#include "core/state/modules.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Checks that the shards of each object fill its grid; names missing coordinates.
Findings check_grids(const Catalog& catalog);

/// If the common state says that a fault is pending (rerun_state_machine.state is
/// WILL_RERUN_FROM_CHECKPOINT), checks that the ranks' `rerun_state_machine_state` objects exist.
Findings check_rerun(const Value& common, const Catalog& catalog);

/// Checks a checkpoint of several modules by its keys and by args['modules']:
///
/// - a module with optimizer state has its param groups, for each optimizer of a chain;
///   it also has a grad scaler and a sharding type if any other module has one,
///   and a sharding type if its state is in buckets.
///   If a distributed optimizer stores groups and scaler itself, each of its data-parallel groups
///   has them (`optimizer.distributed.dp_group_idx_<g>.optimizer`).
///   Groups of several modules under keys that name no module give a warning
/// - a chain of optimizers has no gap
/// - a module named in args has something stored, and the other way round
/// - if one module has random states, all have them, on the grid that args give
Findings check_modules(const StoredModules& modules);

/// Checks that each known sharding type matches the keys of the state and what args say.
Findings check_sharding_types(const StoredModules& modules);

}  // namespace reprise
