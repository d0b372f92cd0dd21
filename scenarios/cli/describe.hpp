#pragma once
// Stored things in a few words, for tables.

#include <string>

#include "core/engine/checkpoint.hpp"

namespace reprise::cli {

/// How a tensor is cut: "whole", "2x1" (a regular or uneven grid of chunks), "7 boxes", "flat, 12
/// ranges", "empty".
std::string describe_cut(const StoredTensor& tensor);

/// What kind of checkpoint it is, by the files beside `.metadata`: "Megatron torch_dist", "plain
/// DCP", "plain DCP, metadata per rank".
std::string describe_kind(Checkpoint& checkpoint);

/// Whose checkpoint it is, as the common state tells: "llm, which came from step 200"; empty if it
/// does not.
std::string describe_run(const Value& common);

std::uint64_t elements_of(const StoredTensor& tensor);
/// Of the tensor's elements; what the items take is more.
std::uint64_t bytes_of(const StoredTensor& tensor);

}  // namespace reprise::cli
