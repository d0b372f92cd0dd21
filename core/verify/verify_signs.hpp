#pragma once
// Looks for signs that what a checkpoint stores does not belong together, although each part of it
// is whole: keys, shapes and the common state are held against each other. Pure.

#include <optional>

#include "core/checkpoint/finding.hpp"
#include "core/state/catalog.hpp"
#include "reprise/types.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Warns if the grid of `rng_state` is not the one of the sizes in args. Megatron-Core cuts random
/// states by pipeline and tensor rank, with experts also by data rank. A load by a job of the sizes
/// in args does not find its shards then.
Findings check_random_grid(const Value& common, const Catalog& catalog);

/// Warns if the common state is of another iteration than the directory's name says.
Findings check_iteration(const Value& common, std::optional<Step> step);

/// Warns if a tensor has one of Adam's two moments, and other tensors have both. A tensor without
/// either may be frozen, and an optimizer without second moments has none at all.
Findings check_moments(const Catalog& catalog);

/// Warns if a router chooses among more experts than are stored beside it, by numbered keys.
///
///   decoder.layers.0.mlp.router.weight                  [4, hidden]
///   decoder.layers.0.mlp.experts.local_experts.3....    0 to 3 must be there
///   decoder.layers.0.mlp.experts.linear_fc1.weight3     the same, as grouped layers name them
Findings check_experts(const Catalog& catalog);

}  // namespace reprise
