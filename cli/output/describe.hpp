#pragma once
// Makes short descriptions of a checkpoint's contents for tables.

#include <string>

#include "core/checkpoint/checkpoint.hpp"
#include "core/state/modules.hpp"

namespace reprise::cli {

/// Describes how a tensor is divided into chunks: "whole", "2x1" (a regular or uneven grid of
/// chunks), "7 boxes", "flat, 12 ranges", "empty".
std::string describe_cut(const StoredTensor& tensor);

/// Describes the kind of checkpoint, judging by the files next to `.metadata`: "Megatron
/// torch_dist", "plain DCP", "plain DCP, metadata per rank".
std::string describe_kind(Checkpoint& checkpoint);

/// Describes the run that wrote the checkpoint: "llm, which came from step 200, written by reprise
/// 0.1.0". Empty if the common state does not say.
std::string describe_run(const Value& common);

/// Describes a module's optimizers: "fully_reshardable", "chain of 2: dp_reshardable (4 dp
/// groups)", "with the whole model's", "none".
std::string describe_optimizers(const StoredModules& modules, const StoredModule& module);

/// Describes the parts that each optimizer of a module stores. Optimizers are separated by '|':
/// "groups, scaler, type", "groups, type | nothing".
std::string describe_parts(const StoredModules& modules, const StoredModule& module);

std::uint64_t elements_of(const StoredTensor& tensor);
/// Returns the size of the tensor's elements in bytes. Stored items also have headers and are
/// larger.
std::uint64_t bytes_of(const StoredTensor& tensor);

}  // namespace reprise::cli
