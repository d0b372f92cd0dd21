#pragma once
// Reads and checks the small values that the modules' optimizers store: param groups, grad scalers,
// sharding types. Also the values by which ranks say how far the job is.

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/megatron/modules.hpp"

namespace reprise {

/// Reads the small values of the modules' optimizers one by one, stores the sharding types in
/// `modules`, and returns findings about wrong values. Skips items that are unreadable or opaque;
/// verify_payload reports those. Reads a bounded number of bytes; if the bound is reached, a note
/// says where reading stopped.
Findings read_module_values(Checkpoint& checkpoint, StoredModules& modules);

/// Warns if ranks that stored values of their own disagree on how far the job is: objects and
/// tensors of one element named step, iteration, epoch or global_step, alone or in train_state.
Findings check_progress_of_ranks(Checkpoint& checkpoint);

/// Returns modules_of() with all readable sharding types filled in. For display, not for checks.
StoredModules inspected_modules(Checkpoint& checkpoint, const Value* common);

}  // namespace reprise
