#pragma once

#include "core/geometry/placement.hpp"
#include "core/plan/cover.hpp"

namespace reprise {

struct PlanSeams {
  /// Describes a placement to the plan; must be the rule by which the job slices.
  ChunkRule describe = ceil_chunk;
  /// Returns the reason if boxes without a placement do not tile the tensor.
  CoverProof cover = prove_cover;
};

}  // namespace reprise
