#pragma once
// The lies of the field that names and the common state betray: a save that exits 0 and leaves out
// what the next load needs. Pure.

#include "core/engine/finding.hpp"
#include "core/state/catalog.hpp"
#include "core/state/value.hpp"

namespace reprise {

/// The shards of each object form its whole grid; missing coordinates are named.
Findings check_grids(const Catalog& catalog);

/// A common state that says that a fault is pending (rerun_state_machine.state is
/// WILL_RERUN_FROM_CHECKPOINT) needs the `rerun_state_machine_state` objects of the ranks.
Findings check_rerun(const Value& common, const Catalog& catalog);

/// A module that stores optimizer state stores its param groups, and the grad scaler and the
/// sharding type if other modules do. Where the distributed optimizer keeps them itself (objects
/// `optimizer.distributed.dp_group_idx_<g>.optimizer`), nothing is missing.
///
///   mimo.<m>.optimizer.mimo.<m><s>.param_groups     s: "", ".1", ...: the chained optimizers
///   optimizer.mimo.<m><s>.param_groups              before the prefix existed
Findings check_modules(const Catalog& catalog);

}  // namespace reprise
