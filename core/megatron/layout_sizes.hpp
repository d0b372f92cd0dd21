#pragma once
// Lists the sizes that define a job's layout over its ranks.
//
// To add an axis, add a row here. Then add a field and the field's row in
// sim/job/groups/layout.hpp. Everything else reads the rows: parsing, printing, meshes, replica
// groups, stored arguments, the checks of stored parts and random streams, and the creation and
// shrinking of random scenarios. An axis that splits the model also needs its own process group;
// see sim/job/groups/groups.hpp.

#include <array>
#include <string_view>

namespace reprise {

struct LayoutSize {
  std::string_view name;      ///< short name of the size, such as "tp"
  std::string_view argument;  ///< Megatron's argument, under which it is stored
  /// True if this size is an axis. Option --rank-order names the axes in the order of ranks.
  bool ordered = false;
};

/// The axes come first, in their default order from fastest-varying to slowest. The sizes that are
/// not axes follow.
inline constexpr std::array kLayoutSizes = {
    LayoutSize{"tp", "tensor_model_parallel_size", true},
    LayoutSize{"cp", "context_parallel_size", true},
    LayoutSize{"ep", "expert_model_parallel_size", true},
    LayoutSize{"dp", "data_parallel_size", true},
    LayoutSize{"pp", "pipeline_model_parallel_size", true},
    LayoutSize{"etp", "expert_tensor_parallel_size"},
    LayoutSize{"dp_replicate", "num_distributed_optimizer_instances"},
    LayoutSize{"vpp", "virtual_pipeline_model_parallel_size"},
};

}  // namespace reprise
