#pragma once
// The sizes by which a job is laid out over its ranks: the one list of their names.
//
// A further axis is a row here, and a field with its row in sim/job/layout.hpp. Parsing, printing,
// meshes, groups of copies, the arguments that a checkpoint stores, and what makes scenarios
// smaller follow. An axis that cuts the model also has a process group of its own: see
// sim/job/groups.hpp.

#include <array>
#include <string_view>

namespace reprise {

struct LayoutSize {
  std::string_view name;      ///< "tp"
  std::string_view argument;  ///< of Megatron, as the common state stores it
  bool ordered = false;       ///< an axis of --rank-order, to which ranks are dealt
};

/// In the default order of axes, the fastest first; then sizes that are no axis of it.
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
