#pragma once
// Chooses owners of sharded objects and proves that the shards of each key fill its grid.

#include <span>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

/// Returns objects sorted by key; the main copy's rank is the owner. Throws COVERAGE_GAP (a
/// coordinate nobody offers), NO_WRITER, MULTI_WRITER and LAYOUT_MISMATCH (other grids).
std::vector<PlannedObject> plan_objects(std::span<const LocalPlan> plans, const Group& savers);

}  // namespace reprise
