#pragma once
// Data passed between a job and the engine: leaves by key.

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

/// Origin of a leaf's boxes if a mesh and a placement determine them: cover is then proved on the
/// axes, at a cost that does not depend on the number of ranks.
struct Placed {
  std::shared_ptr<const Mesh> mesh;
  Placement placement;
};

/// A tensor of which this rank holds some boxes. The job owns `data`; the engine reads it until
/// begin_save returns and writes it during load.
struct TensorLeaf {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;                 ///< shape of the global tensor
  std::vector<Piece> pieces;  ///< parts held here; empty if this rank holds nothing
  std::byte* data = nullptr;  ///< local buffer, element 0; may be device memory
  std::int32_t replica = 0;   ///< 0: the main copy of these boxes
  std::optional<Placed> placed;
};

/// An opaque value at a coordinate of a small grid; stored as `key/shard_<offset>_<grid>`.
struct ObjectLeaf {
  std::string key;
  Dims grid;
  Dims coordinate;
  std::int32_t replica = 0;
  Value value;
};

/// Keys are unique among tensors and unique among objects.
struct StateDict {
  std::vector<TensorLeaf> tensors;
  std::vector<ObjectLeaf> objects;
  /// A dict that is the same on all ranks. Written once.
  Value common = Dict{};
};

/// Returns a key such as "rng_state/shard_0.1_2.4".
std::string object_key(const std::string& key, const Dims& coordinate, const Dims& grid);
/// The parts of such a key; empty for keys of another form. Older files may have one offset more
/// than the grid has dimensions: the last dimension is then unknown and set to -1.
struct ObjectKey {
  std::string key;
  Dims coordinate;
  Dims grid;
};
std::optional<ObjectKey> parse_object_key(std::string_view name);

}  // namespace reprise
