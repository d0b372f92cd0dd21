#pragma once
// What a job hands to the engine and takes from it: leaves by key.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/geometry/piece.hpp"
#include "core/geometry/placement.hpp"
#include "reprise/mesh.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// How a leaf came to its boxes, where a mesh and a placement decide: cover is then proved on the
/// axes, at a cost that does not depend on the number of ranks.
struct Placed {
  std::shared_ptr<const Mesh> mesh;
  Placement placement;
};

/// A tensor of which this rank holds some boxes. `data` stays the job's; the engine reads it until
/// begin_save returns and writes it during load.
struct TensorLeaf {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;                 ///< of the global tensor
  std::vector<Piece> pieces;  ///< what is held here; empty if this rank holds nothing
  std::byte* data = nullptr;  ///< local buffer, element 0; may be device memory
  std::int32_t replica = 0;   ///< 0: the main copy of these boxes
  std::optional<Placed> placed;
};

/// An opaque value at a coordinate of a small grid; on disk `key/shard_<offset>_<grid>`.
struct ObjectLeaf {
  std::string key;
  Dims grid;
  Dims coordinate;
  std::int32_t replica = 0;
  Value value;
};

/// Keys are unique among tensors and among objects.
struct StateDict {
  std::vector<TensorLeaf> tensors;
  std::vector<ObjectLeaf> objects;
  /// The same on all ranks; a dict. Written once.
  Value common = Dict{};
};

/// "rng_state/shard_0.1_2.4"
std::string object_key(const std::string& key, const Dims& coordinate, const Dims& grid);
/// The parts of such a key; empty if it is not of that form. Older files may have one offset more
/// than the grid has dimensions: the last dimension is then unknown and given as -1.
struct ObjectKey {
  std::string key;
  Dims coordinate;
  Dims grid;
};
std::optional<ObjectKey> parse_object_key(std::string_view name);

}  // namespace reprise
