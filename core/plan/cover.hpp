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

/// Reason why boxes do not tile. `code` is COVERAGE_GAP, CHUNK_OVERLAP or EXTENT_MISMATCH (a box
/// exceeds the tensor); `where` is an element or region that shows it.
struct CoverDefect {
  Code code = Code::kCoverageGap;
  Box where;
  std::string message;  ///< names the boxes, for people
};

/// Checks arbitrary boxes, at the cost and with the LIMIT stated in core/geometry/tiling.hpp. Empty
/// boxes cover nothing and are allowed within the tensor.
std::optional<CoverDefect> prove_cover(const Dims& shape, std::span<const Box> boxes);
using CoverProof = std::optional<CoverDefect> (*)(const Dims& shape, std::span<const Box> boxes);

/// Checks all members of a mesh under one placement, on each dimension's axes. The cost depends on
/// the sizes of these axes, not on their product with other dimensions' axes, nor on replicas.
std::optional<CoverDefect> prove_cover(const Dims& shape, const Mesh& mesh,
                                       const Placement& placement, ChunkRule rule = ceil_chunk);

}  // namespace reprise
