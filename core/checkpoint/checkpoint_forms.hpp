#pragma once
// Finds out in which forms a checkpoint is stored, as far as releases of torch and Megatron-Core
// differ in them.

#include "core/checkpoint/checkpoint.hpp"
#include "core/format/releases.hpp"

namespace reprise {

/// Returns the forms that the metadata, the common state and the files beside them show. Reads no
/// payload but the common state, in the place of which `instead` is looked at if it is given. What
/// is damaged shows no form.
Forms forms_of(Checkpoint& checkpoint, const Value* instead = nullptr);

}  // namespace reprise
