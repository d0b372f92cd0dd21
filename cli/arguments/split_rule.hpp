#pragma once
// Combines `--split KEY-REGEX=DIM:N` and `--ranks N` into one rule for splitting tensors.

#include <cstdint>
#include <string>
#include <vector>

#include "core/reshard/reshard.hpp"

namespace reprise::cli {

/// Returns the rule by which tensors are split. For each tensor, the rule uses the first split
/// whose expression matches within the tensor's key and whose dimension the tensor has. If there is
/// no such split, the rule splits dimension 0 into `ranks` parts, or keeps the tensor's chunks if
/// `ranks` is 0. Throws USAGE for text that is not a split, and for more than 65,536 parts.
CutRule cut_rule(const std::vector<std::string>& splits, std::int64_t ranks);

/// Returns the number of writers: `writers` or, if that is 0, `ranks`, at least 1. Throws USAGE for
/// more than 65,536.
std::int32_t writers_for(std::int64_t ranks, std::int64_t writers);

/// Throws USAGE if a split applies to no tensor: its expression matches within no tensor's key, or
/// only within keys of tensors that lack the split's dimension.
void check_splits(const std::vector<std::string>& splits, const Catalog& catalog);

}  // namespace reprise::cli
