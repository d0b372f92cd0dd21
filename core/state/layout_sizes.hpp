#pragma once
// The only list of the sizes that define a job's layout over its ranks.
//
// To add an axis, add a row here, and a field with its row in sim/job/groups/layout.hpp. Parsing,
// printing, meshes, replica groups and stored arguments follow automatically. So do the conditions
// under which stored parts and random streams fit, and random scenarios and their shrinking. An
// axis that splits the model also needs a process group of its own: see sim/job/groups/groups.hpp.

#include <array>
#include <string_view>

namespace reprise {

struct LayoutSize {
  std::string_view name;      ///< short name of the size, such as "tp"
  std::string_view argument;  ///< Megatron's argument, under which it is stored
  bool ordered = false;       ///< true for an axis of --rank-order, which assigns ranks to axes
};

/// Lists the axes in default order, with the fastest first, and after them the sizes that are not
/// axes.
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
