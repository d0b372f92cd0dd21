#pragma once
// Identifies state that belongs to the ranks of one layout and is meaningless under another: random
// states, rerun machine state, and per-data-parallel-group state of a distributed optimizer.

#include <string_view>

namespace reprise {

/// True if `key`, of an object (without coordinate and grid) or of a tensor, is such state.
/// Prefixes for modules and chained optimizers may precede the name.
bool is_layout_bound(std::string_view key);

/// True for state that a distributed optimizer keeps per data-parallel group. Its positions refer
/// to buckets, which are cut differently under another model-parallel layout.
bool is_optimizer_group(std::string_view key);

/// True if `path` within the common state, such as "['args']['tensor_model_parallel_size']", is a
/// launch argument that describes the layout and so differs between layouts. Includes those of a
/// module, `['args']['modules']['vision']['data_parallel_size']`, and a module's ranks.
bool is_layout_argument(std::string_view path);

/// True for a layout argument that changes the number of ranks but not the part of the model each
/// one holds: the buckets of a distributed optimizer stay the same.
bool is_data_parallel_argument(std::string_view path);

}  // namespace reprise
