#pragma once
// Input of `plan`: the tensors that each rank of a job would offer or request, without data.

#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/groups/layout.hpp"
#include "sim/job/model/model.hpp"

namespace reprise::cli {

/// Returns the offers by rank: weights in bfloat16 and the optimizer's three tensors in float32, as
/// fully_reshardable jobs save them. Ranks of one pipeline stage share all parts that follow from
/// placements, computed once per stage; boxes of fused tensors are computed per rank.
std::vector<LocalPlan> offers_of(const sim::ModelSpec& model, const sim::Layout& layout);

/// Returns the number of tensor shares that all ranks hold together: the cost of a plan. Refuses a
/// layout that does not fit.
std::uint64_t shares_of(const sim::ModelSpec& model, const sim::Layout& layout);

/// Describes the ranks that a layout leaves idle: "4 ranks hold no expert: ..."; empty if every
/// rank has a part. The layout must fit the model.
std::vector<std::string> idle_notes(const sim::ModelSpec& model, const sim::Layout& layout);

/// Returns the state of each rank: every tensor of a catalog, with dimension 0 cut into `ranks`
/// parts; a tensor without dimensions is whole on each rank.
std::vector<StateDict> states_of(const Catalog& catalog, std::int32_t ranks);

}  // namespace reprise::cli
