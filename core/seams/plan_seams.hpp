#pragma once

#include <vector>

#include "core/geometry/placement.hpp"
#include "core/plan/cover.hpp"
#include "core/plan/save_plan.hpp"

namespace reprise {

/// Returns the offers unchanged.
std::vector<LocalPlan> as_offered(std::vector<LocalPlan> offers);

struct PlanSeams {
  /// The chunk rule that the plan assumes when it computes the box of a mesh member from a
  /// placement. The job must split its tensors by the same rule.
  ChunkRule describe = ceil_chunk;
  /// Returns the reason why boxes without a placement do not tile the tensor; nothing if they tile
  /// it.
  CoverProof cover = prove_cover;
  /// Chooses the rank that writes a box that several ranks hold.
  ElectOwner elect = elect_least_loaded;
  /// Returns what the plan is made of. `offers` are those of all ranks, in group order.
  std::vector<LocalPlan> (*gathered)(std::vector<LocalPlan> offers) = as_offered;
};

}  // namespace reprise
