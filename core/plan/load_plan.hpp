#pragma once
// Selects the stored bytes that a rank must read, by intersecting wanted boxes with stored boxes.
// Pure.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// One destination of stored elements. Piece `piece` of leaf `leaf` receives `region`, which is in
/// global coordinates and lies within piece `source` of the stored chunk (see pieces_of in
/// core/state/catalog.hpp).
struct LoadTarget {
  std::uint32_t source = 0;
  std::uint32_t leaf = 0;
  std::uint32_t piece = 0;
  Box region;
};

/// The part of one stored chunk that this rank needs. Overlapping requests become several targets
/// of one read, so each byte is read once.
struct ChunkRead {
  std::uint32_t tensor = 0;  ///< index into Catalog::tensors
  std::uint32_t chunk = 0;   ///< index into the tensor's chunks
  std::vector<LoadTarget> targets;
};

/// A request that the checkpoint cannot meet, or a difference that only the caller can accept.
struct LoadMismatch {
  Code code = Code::kNotStored;  ///< NOT_STORED, SHAPE_DRIFT, DTYPE_DRIFT, COVERAGE_GAP
  std::string key;
  std::string message;
};

/// An object that is wanted and stored.
struct ObjectRead {
  std::uint32_t leaf = 0;    ///< index into the list of wanted objects
  std::uint32_t object = 0;  ///< index into Catalog::objects
};

struct LoadPlan {
  std::vector<ObjectRead> objects;  ///< in the order of the wanted objects
  std::vector<ChunkRead> reads;     ///< ordered by file, then by offset
  std::vector<LoadMismatch> mismatches;
  std::vector<std::string> not_requested;  ///< keys of the catalog that no leaf or object requests
  std::uint64_t elements = 0;              ///< number of wanted elements; each counts once per leaf
  std::uint64_t bytes_needed = 0;  ///< bytes of elements to read; each stored byte counts once
};

/// Plans a load. If the request for a leaf cannot be met, the plan contains a mismatch instead of
/// reads for this leaf. Assumes that the catalog's chunks tile their tensors (prove_cover was
/// called). O((requests + chunks) log chunks + hits) for chunks
/// that are slabs of one dimension.
LoadPlan load_plan(std::span<const TensorLeaf> wanted, std::span<const ObjectLeaf> wanted_objects,
                   const Catalog& catalog);

}  // namespace reprise
