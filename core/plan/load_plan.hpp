#pragma once
// Selects the stored bytes a rank must read. Pure: wanted boxes x stored boxes.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// A destination of a region: piece `piece` of leaf `leaf` receives `region` (global coordinates),
/// which lies within piece `source` of the stored chunk (see pieces_of in core/state/catalog.hpp).
struct LoadTarget {
  std::uint32_t source = 0;
  std::uint32_t leaf = 0;
  std::uint32_t piece = 0;
  Box region;
};

/// The part of one stored chunk that this rank needs. Overlapping requests become several targets
/// of one read, so that each byte is read once.
struct ChunkRead {
  std::uint32_t tensor = 0;  ///< index into Catalog::tensors
  std::uint32_t chunk = 0;   ///< index into its chunks
  std::vector<LoadTarget> targets;
};

/// A request that the checkpoint cannot meet, or only after a decision of the caller.
struct LoadMismatch {
  Code code = Code::kNotStored;  ///< NOT_STORED, SHAPE_DRIFT, DTYPE_DRIFT, COVERAGE_GAP
  std::string key;
  std::string message;
};

/// A wanted object that is stored.
struct ObjectRead {
  std::uint32_t leaf = 0;    ///< index into the wanted objects
  std::uint32_t object = 0;  ///< index into Catalog::objects
};

struct LoadPlan {
  std::vector<ObjectRead> objects;  ///< in the order of the wanted objects
  std::vector<ChunkRead> reads;     ///< in file order: by file, then offset
  std::vector<LoadMismatch> mismatches;
  std::vector<std::string> not_requested;  ///< catalog keys that no leaf or object requests
  std::uint64_t elements = 0;              ///< wanted elements, each once per leaf
  std::uint64_t bytes_needed = 0;          ///< element bytes to read, each stored byte once
};

/// Gives a leaf whose request is wrong a mismatch and no reads. Assumes that the catalog's chunks
/// tile (prove_cover was called). O((requests + chunks) log chunks + hits) for chunks that are
/// slabs of one dimension.
LoadPlan load_plan(std::span<const TensorLeaf> wanted, std::span<const ObjectLeaf> wanted_objects,
                   const Catalog& catalog);

}  // namespace reprise
