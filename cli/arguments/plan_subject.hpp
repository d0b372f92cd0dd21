#pragma once
// Makes the input of the verb `plan`: the tensors that each rank would save or load, without data.

#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/groups/layout.hpp"
#include "sim/job/model/model.hpp"

namespace reprise::cli {

/// Returns the offers of each rank: weights in bfloat16, and the optimizer's three tensors in
/// float32, as fully_reshardable jobs save them. Most offers are computed once per pipeline stage
/// and shared by its ranks. Only the boxes of fused tensors are computed for each rank.
std::vector<LocalPlan> offers_of(const sim::ModelSpec& model, const sim::Layout& layout);

/// Counts the tensors of which each rank holds a share, and returns the sum over all ranks. The
/// cost of planning depends on this sum. Throws if the layout does not fit the model.
std::uint64_t shares_of(const sim::ModelSpec& model, const sim::Layout& layout);

/// Describes the ranks that a layout leaves idle, such as "4 ranks hold no expert: ...". Empty if
/// no rank is idle. The layout must fit the model.
std::vector<std::string> idle_notes(const sim::ModelSpec& model, const sim::Layout& layout);

/// Returns one state per rank. Each state has every tensor of the catalog, with dimension 0 split
/// into `ranks` parts. A tensor without dimensions is whole on each rank.
std::vector<StateDict> states_of(const Catalog& catalog, std::int32_t ranks);

}  // namespace reprise::cli
