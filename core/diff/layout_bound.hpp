#pragma once
// Identifies state that belongs to the ranks of one layout and is meaningless under another one:
// random states, state of the rerun machine, and the state that a distributed optimizer stores for
// each data-parallel group.

#include <string_view>

namespace reprise {

/// True if `key` is the key of state that belongs to the ranks of one layout. `key` is the key of a
/// tensor, or the key of an object without its coordinate and grid. Prefixes for modules and
/// chained optimizers may precede the name of the state.
bool is_layout_bound(std::string_view key);

/// True if `key` is the key of state that a distributed optimizer stores for each data-parallel
/// group. Positions in this state are positions in the optimizer's buckets. Another model-parallel
/// layout has different buckets.
bool is_optimizer_group(std::string_view key);

/// True if `path` within the common state, such as "['args']['tensor_model_parallel_size']", is a
/// launch argument that describes the layout and therefore differs between layouts. This includes a
/// module's arguments, such as "['args']['modules']['vision']['data_parallel_size']", and the
/// module's ranks.
bool is_layout_argument(std::string_view path);

/// True for a layout argument that changes the number of ranks, but not the part of the model that
/// each rank holds. Such a change leaves the buckets of a distributed optimizer as they are.
bool is_data_parallel_argument(std::string_view path);

}  // namespace reprise
