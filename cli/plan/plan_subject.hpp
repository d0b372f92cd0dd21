#pragma once
// Makes the input of the verb `plan`: descriptions of the tensors that each rank would save or
// load, without their data.

#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/groups/layout.hpp"
#include "sim/job/model/model.hpp"

namespace reprise::cli {

/// Returns what each rank offers to save: weights in bfloat16, and the optimizer's three tensors in
/// float32, as fully_reshardable jobs save them. Most offers are computed once per pipeline stage
/// and shared by its ranks. Only the boxes of fused tensors are computed for each rank.
std::vector<LocalPlan> offers_of(const sim::ModelSpec& model, const sim::Layout& layout);

/// Counts the tensors that each rank holds a share of, and returns the sum over all ranks. The cost
/// of planning depends on this sum. Throws if the layout does not fit the model.
std::uint64_t shares_of(const sim::ModelSpec& model, const sim::Layout& layout);

/// Returns notes about the ranks that a layout leaves idle, for example "4 ranks hold no expert:
/// ...". Empty if no rank is idle. The layout must fit the model.
std::vector<std::string> idle_notes(const sim::ModelSpec& model, const sim::Layout& layout);

/// Returns one state per rank. Every tensor of the catalog is split into `ranks` parts along
/// dimension 0, and each state has one of these parts. A tensor without dimensions is whole on each
/// rank.
std::vector<StateDict> states_of(const Catalog& catalog, std::int32_t ranks);

}  // namespace reprise::cli
