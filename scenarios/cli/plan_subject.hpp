#pragma once
// What `plan` plans with: the leaves that each rank of a job would hand over, without data.

#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/layout.hpp"
#include "sim/job/model.hpp"

namespace reprise::cli {

/// By rank: weights in bfloat16, the optimizer's three tensors in float32, as training jobs save
/// them. Leaves have no buffers.
std::vector<StateDict> states_of(const sim::ModelSpec& model, const sim::Layout& layout);

/// By rank: every tensor of a catalog, dimension 0 cut over `ranks` ranks; what has none is whole
/// on each.
std::vector<StateDict> states_of(const Catalog& catalog, std::int32_t ranks);

}  // namespace reprise::cli
