#pragma once
// Lists the sizes that define a job's layout over its ranks. No other file lists them.
//
// To add an axis, add a row here, and a field with its row in sim/job/groups/layout.hpp. Everything
// else reads the rows: parsing, printing, meshes, replica groups, stored arguments, the checks that
// stored parts and random streams fit, random scenarios and their shrinking. An axis that splits
// the model also needs a process group of its own: see sim/job/groups/groups.hpp.

#include <array>
#include <string_view>

namespace reprise {

struct LayoutSize {
  std::string_view name;      ///< short name of the size, such as "tp"
  std::string_view argument;  ///< Megatron's argument, under which it is stored
  /// True for an axis that --rank-order may name; that option assigns ranks to axes.
  bool ordered = false;
};

/// Lists first the axes in their default order, beginning with the axis along which ranks are
/// adjacent, and then the sizes that are not axes.
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
