#pragma once
// Identifies state that belongs to the ranks of one layout and is meaningless under another one:
// random states, state of the rerun machine, and the state that a distributed optimizer stores for
// each data-parallel group.

#include <string_view>

namespace reprise {

/// True if `key` is the key of state that is bound to a layout: the key of a tensor, or an object's
/// key without its coordinate and grid. Prefixes for modules and chained optimizers may precede the
/// name.
bool is_layout_bound(std::string_view key);

/// True for state that a distributed optimizer stores for each data-parallel group. Its positions
/// refer to buckets, and another model-parallel layout cuts those differently.
bool is_optimizer_group(std::string_view key);

/// True if `path` within the common state, such as "['args']['tensor_model_parallel_size']", is a
/// launch argument that describes the layout and therefore differs between layouts. Arguments of a
/// module count too: `['args']['modules']['vision']['data_parallel_size']`, and the module's ranks.
bool is_layout_argument(std::string_view path);

/// True for a layout argument that changes the number of ranks, but not the part of the model that
/// each rank holds. The buckets of a distributed optimizer then stay the same.
bool is_data_parallel_argument(std::string_view path);

}  // namespace reprise
