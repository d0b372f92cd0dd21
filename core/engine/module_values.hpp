#pragma once
// The small values that modules' optimizers store: param groups, grad scalers, sharding types.

#include "core/engine/checkpoint.hpp"
#include "core/engine/finding.hpp"
#include "core/state/modules.hpp"

namespace reprise {

/// Reads them one by one, takes the sharding types into `modules`, and returns what is wrong with
/// values. An item that can't be read or is opaque says nothing here: verify_payload says it. Reads
/// a bounded number of bytes, and says in a note where it stopped.
Findings read_module_values(Checkpoint& checkpoint, StoredModules& modules);

/// modules_of() with the sharding types that can be read: for showing, not for judging.
StoredModules inspected_modules(Checkpoint& checkpoint, const Value* common);

}  // namespace reprise
