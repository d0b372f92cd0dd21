#pragma once
// Uses key names and the common state to detect known failures, such as saves that exit with 0 but
// leave out what the next load needs. Pure.

#include "core/checkpoint/finding.hpp"
#include "core/megatron/modules.hpp"
#include "core/state/catalog.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Checks that the shards of each object fill its grid. Findings list the missing coordinates.
Findings check_grids(const Catalog& catalog);

/// Checks that the ranks' `rerun_state_machine_state` objects exist if the common state says that a
/// fault is pending (rerun_state_machine.state is WILL_RERUN_FROM_CHECKPOINT).
Findings check_rerun(const Value& common, const Catalog& catalog);

/// Checks a checkpoint of several modules by its keys and by args['modules']:
///
/// - A module with optimizer state must have param groups for each optimizer of its chain. It must
///   also have a grad scaler or a sharding type if another module has one. It must have a sharding
///   type if its state is in buckets.
/// - If a distributed optimizer stores param groups and grad scaler itself, each of its
///   data-parallel groups must have them (`optimizer.distributed.dp_group_idx_<g>.optimizer`).
/// - A warning is given if several modules store groups under keys that name no module.
/// - A chain of optimizers must have no gap.
/// - Each module in args must have stored data; a module with stored data must be in args.
/// - If one module has random states, all modules must have them, on the grid given in args.
Findings check_modules(const StoredModules& modules);

/// Checks that each known sharding type matches the keys of the stored state and the type in args.
Findings check_sharding_types(const StoredModules& modules);

}  // namespace reprise
