#pragma once
// Makes short descriptions of a checkpoint's contents for tables.

#include <string>

#include "core/checkpoint/checkpoint.hpp"
#include "core/megatron/modules.hpp"

namespace reprise::cli {

/// Describes how a tensor is divided into chunks. Returns "whole", "7 boxes", "flat, 12 ranges",
/// "empty", or a regular or uneven grid of chunks such as "2x1".
std::string describe_cut(const StoredTensor& tensor);

/// Describes the kind of checkpoint, judging by the files next to `.metadata`. Returns, for
/// example, "Megatron torch_dist", "plain DCP", or "plain DCP, metadata per rank".
std::string describe_kind(Checkpoint& checkpoint);

/// Describes the run that wrote the checkpoint, for example "llm, which came from step 200, written
/// by reprise 0.1.0". Returns empty text if the common state does not name the run.
std::string describe_run(const Value& common);

/// Describes a module's optimizers, for example "fully_reshardable" or "chain of 2: dp_reshardable
/// (4 dp groups)". Returns "with the whole model's" if the module has no optimizers of its own, and
/// "none" if there are no optimizers at all.
std::string describe_optimizers(const StoredModules& modules, const StoredModule& module);

/// Lists what each optimizer of a module stores, for example "groups, scaler, type". Separates
/// several optimizers by '|', as in "groups, type | nothing".
std::string describe_parts(const StoredModules& modules, const StoredModule& module);

std::uint64_t elements_of(const StoredTensor& tensor);
/// Returns the size of the tensor's elements in bytes. Stored items also have headers and are
/// larger.
std::uint64_t bytes_of(const StoredTensor& tensor);

}  // namespace reprise::cli
