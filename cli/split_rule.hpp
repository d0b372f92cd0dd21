#pragma once
// Combines `--split KEY-REGEX=DIM:N` and `--ranks N` into one rule.

#include <cstdint>
#include <string>
#include <vector>

#include "core/reshard/reshard.hpp"

namespace reprise::cli {

/// Applies the first split whose expression is found in the key and whose dimension the tensor has;
/// else cuts dimension 0 into `ranks` parts; with `ranks` 0 a tensor keeps its chunks. USAGE for
/// text that is no split, and for more than 65,536 parts.
CutRule cut_rule(const std::vector<std::string>& splits, std::int64_t ranks);

/// USAGE for a split whose expression is found in no tensor's key, or only in keys of tensors
/// without its dimension: it would cut nothing.
void check_splits(const std::vector<std::string>& splits, const Catalog& catalog);

}  // namespace reprise::cli
