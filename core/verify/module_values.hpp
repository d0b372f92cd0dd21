#pragma once
// Reads and checks the small values that the modules' optimizers store: param groups, grad scalers,
// sharding types.

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/state/modules.hpp"

namespace reprise {

/// Reads the small values of the modules' optimizers one by one, stores the sharding types in
/// `modules`, and returns findings about wrong values. Skips items that are unreadable or opaque;
/// verify_payload reports those. Reads a bounded number of bytes; if the bound is reached, a note
/// says where reading stopped.
Findings read_module_values(Checkpoint& checkpoint, StoredModules& modules);

/// Returns modules_of() with all readable sharding types filled in. For display, not for checks.
StoredModules inspected_modules(Checkpoint& checkpoint, const Value* common);

}  // namespace reprise
