#pragma once
// Stored things in a few words, for tables.

#include <string>

#include "core/engine/checkpoint.hpp"
#include "core/state/modules.hpp"

namespace reprise::cli {

/// How a tensor is cut: "whole", "2x1" (a regular or uneven grid of chunks), "7 boxes", "flat, 12
/// ranges", "empty".
std::string describe_cut(const StoredTensor& tensor);

/// What kind of checkpoint it is, by the files beside `.metadata`: "Megatron torch_dist", "plain
/// DCP", "plain DCP, metadata per rank".
std::string describe_kind(Checkpoint& checkpoint);

/// Whose checkpoint it is, as the common state tells: "llm, which came from step 200, written by
/// reprise 0.1.0"; empty if it does not.
std::string describe_run(const Value& common);

/// A module's optimizers: "fully_reshardable", "chain of 2: dp_reshardable (4 dp groups)", "with
/// the whole model's", "none".
std::string describe_optimizers(const StoredModules& modules, const StoredModule& module);

/// Which parts each of them stores: "groups, scaler, type", "groups, type | nothing".
std::string describe_parts(const StoredModules& modules, const StoredModule& module);

std::uint64_t elements_of(const StoredTensor& tensor);
/// Of the tensor's elements; what the items take is more.
std::uint64_t bytes_of(const StoredTensor& tensor);

}  // namespace reprise::cli
