#pragma once
// State that belongs to the ranks of one layout and means nothing under another: random states, the
// rerun machine's state, and what a distributed optimizer keeps per data-parallel group.

#include <string_view>

namespace reprise {

/// `key` of an object (without coordinate and grid) or of a tensor. Prefixes of modules and of
/// chained optimizers may stand before the name.
bool is_layout_bound(std::string_view key);

/// True for state that a distributed optimizer keeps per data-parallel group. Its places are those
/// of buckets, which are cut otherwise under another model-parallel layout.
bool is_optimizer_group(std::string_view key);

/// `path` within the common state, such as "['args']['tensor_model_parallel_size']": a launch
/// argument that is the layout, and so differs where layouts do; also one of a module, as
/// `['args']['modules']['vision']['data_parallel_size']`, and the ranks of a module.
bool is_layout_argument(std::string_view path);

/// True if such an argument changes how many ranks there are, and not which part of the model one
/// of them holds: the buckets of a distributed optimizer stay what they are.
bool is_data_parallel_argument(std::string_view path);

}  // namespace reprise
