#pragma once
// Proves that boxes tile a tensor, that is, that every element is in exactly one box.

#include <optional>
#include <span>
#include <string>

#include "core/geometry/box.hpp"
#include "core/geometry/placement.hpp"
#include "reprise/error.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// The reason why boxes do not tile a tensor. `code` is COVERAGE_GAP, CHUNK_OVERLAP or
/// EXTENT_MISMATCH (a box exceeds the tensor). `where` is an element or region that shows the
/// defect.
struct CoverDefect {
  Code code = Code::kCoverageGap;
  Box where;
  std::string message;  ///< lists the boxes, for human readers
};

/// Checks arbitrary boxes. For the cost, and for when LIMIT is thrown, see
/// core/geometry/tiling.hpp. Empty boxes cover nothing; they are allowed within the tensor.
std::optional<CoverDefect> prove_cover(const Dims& shape, std::span<const Box> boxes);
using CoverProof = std::optional<CoverDefect> (*)(const Dims& shape, std::span<const Box> boxes);

/// Checks the boxes of all members of a mesh under one placement. Checks each dimension separately.
/// The cost therefore depends on the sizes of the axes that split a dimension. It does not depend
/// on the product over all dimensions or on the number of replicas.
std::optional<CoverDefect> prove_cover(const Dims& shape, const Mesh& mesh,
                                       const Placement& placement, ChunkRule rule = ceil_chunk);

}  // namespace reprise
