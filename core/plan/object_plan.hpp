#pragma once
// Chooses the owners of sharded objects, and proves that the shards of each key fill its grid.

#include <span>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

/// Returns the objects, sorted by key. The rank with the main copy becomes the owner. Throws
/// COVERAGE_GAP if a shard is offered by no rank, LAYOUT_MISMATCH if ranks disagree on a grid, and
/// NO_WRITER or MULTI_WRITER if an object does not have exactly one main copy.
std::vector<PlannedObject> plan_objects(std::span<const LocalPlan> plans, const Group& savers);

}  // namespace reprise
