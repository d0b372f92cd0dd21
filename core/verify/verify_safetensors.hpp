#pragma once
// Holds the tensors of safetensors files against the small files that Hugging Face's programs keep
// beside them.

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"

namespace reprise {

/// Tells what a model or an adapter does not store, and warns where that contradicts its
/// configuration:
///
/// - A note says that an output layer is not stored, which is right if its weights are tied to the
///   embedding. A warning if config.json says that they are not.
/// - A note says that this is an adapter, and of which model. A warning if its configuration is
///   missing, and an error for a LoRA matrix without the other one.
Findings check_safetensors(Checkpoint& checkpoint);

}  // namespace reprise
