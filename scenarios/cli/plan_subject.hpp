#pragma once
// What `plan` plans with: what each rank of a job would offer or ask for, without data.

#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/layout.hpp"
#include "sim/job/model.hpp"

namespace reprise::cli {

/// By rank: weights in bfloat16, the optimizer's three tensors in float32, as fully_reshardable
/// jobs save them. Ranks of one pipeline stage share all that follows from placements, so it is
/// described once for each stage; boxes of fused tensors are each rank's own.
std::vector<LocalPlan> offers_of(const sim::ModelSpec& model, const sim::Layout& layout);

/// Returns how many shares of tensors all ranks hold together: what a plan costs. Refuses a layout
/// that does not fit.
std::uint64_t shares_of(const sim::ModelSpec& model, const sim::Layout& layout);

/// What a layout leaves idle, in words: "4 ranks hold no expert: ..."; empty if every rank has its
/// part. The layout fits the model.
std::vector<std::string> idle_notes(const sim::ModelSpec& model, const sim::Layout& layout);

/// By rank: every tensor of a catalog, dimension 0 cut over `ranks` ranks; what has none is whole
/// on each.
std::vector<StateDict> states_of(const Catalog& catalog, std::int32_t ranks);

}  // namespace reprise::cli
