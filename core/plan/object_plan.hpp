#pragma once
// Owners of sharded objects, and the proof that the shards of each key form its whole grid.

#include <span>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

/// Sorted by key; the main copy's rank is owner. Throws COVERAGE_GAP (a coordinate that nobody
/// offers), NO_WRITER, MULTI_WRITER and LAYOUT_MISMATCH (grids that differ, a coordinate outside).
std::vector<PlannedObject> plan_objects(std::span<const LocalPlan> plans, const Group& savers);

}  // namespace reprise
