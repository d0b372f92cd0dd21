#pragma once

#include "core/geometry/placement.hpp"
#include "core/plan/cover.hpp"

namespace reprise {

struct PlanSeams {
  /// The chunk rule by which a placement is described to the plan. It must be the rule by which the
  /// job slices.
  ChunkRule describe = ceil_chunk;
  /// Returns the reason why boxes without a placement do not tile the tensor; nothing if they do.
  CoverProof cover = prove_cover;
};

}  // namespace reprise
