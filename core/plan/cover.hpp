#pragma once
// Proofs that boxes tile a tensor: every element in exactly one box.

#include <optional>
#include <span>
#include <string>

#include "core/geometry/box.hpp"
#include "core/geometry/placement.hpp"
#include "reprise/error.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// Why boxes do not tile. `code` is COVERAGE_GAP, CHUNK_OVERLAP or EXTENT_MISMATCH (a box leaves
/// the tensor); `where` an element or region that shows it.
struct CoverDefect {
  Code code = Code::kCoverageGap;
  Box where;
  std::string message;  ///< names the boxes, for people
};

/// Arbitrary boxes, at the cost that core/plan/tiling.hpp states, and LIMIT as there. Empty boxes
/// cover nothing and are allowed if they lie within.
std::optional<CoverDefect> prove_cover(const Dims& shape, std::span<const Box> boxes);

/// All members of a mesh under one placement: proved on each dimension's axes. The cost depends on
/// the axes' sizes, not on their product with other dimensions' axes, nor on replicas.
std::optional<CoverDefect> prove_cover(const Dims& shape, const Mesh& mesh,
                                       const Placement& placement, ChunkRule rule = ceil_chunk);

}  // namespace reprise
