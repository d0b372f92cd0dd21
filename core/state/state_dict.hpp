#pragma once
// The data that a job and the engine exchange: tensors and objects, which are called leaves and are
// identified by keys.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/geometry/piece.hpp"
#include "core/geometry/placement.hpp"
#include "reprise/mesh.hpp"
#include "reprise/state.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// The buffer of one piece of a tensor.
struct PieceMemory {
  std::byte* data = nullptr;
  MemoryKind kind = MemoryKind::kDevice;
};

/// The mesh and the placement that determine a leaf's boxes. With them, the planner can prove axis
/// by axis that the boxes cover the tensor. The cost of this proof does not depend on the number of
/// ranks.
struct Placed {
  std::shared_ptr<const Mesh> mesh;
  Placement placement;
};

/// A tensor of which this rank holds some boxes. The job owns `data`. The engine reads `data` until
/// begin_save returns, or wait_for_staging if the save says so, and writes to it during a load.
struct TensorLeaf {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;                 ///< shape of the global tensor
  std::vector<Piece> pieces;  ///< parts held by this rank; empty if it holds nothing
  std::byte* data = nullptr;  ///< start of the local buffer; may be device memory
  std::int32_t replica = 0;   ///< 0 for the main copy of these boxes, or kAnyCopy
  std::optional<Placed> placed = {};
  /// Where each piece is, if the pieces have buffers of their own; then `data` is not used.
  std::vector<PieceMemory> memory = {};
  FoldedExtents folded = {};  ///< of a tensor of more than kMaxNdim dimensions
  /// True if a load may find another shape of as many dimensions, and fills what is stored.
  bool any_shape = false;
};

/// Returns the memory of a piece of the leaf, at its element with the local offset 0.
PieceMemory memory_of(const TensorLeaf& leaf, const Piece& piece);
/// Returns the address of the element of a piece that has the global index `index`.
std::byte* address_of(const TensorLeaf& leaf, const Piece& piece, const Dims& index);

/// An opaque value at a coordinate of a small grid. It is stored as `key/shard_<offset>_<grid>`. If
/// the grid has no dimensions, the leaf is plain: its value is Bytes, which are stored as they are,
/// under the key alone.
struct ObjectLeaf {
  std::string key;
  Dims grid;
  Dims coordinate;
  std::int32_t replica = 0;  ///< 0 for the main copy, or kAnyCopy
  Value value;

  bool is_plain() const { return grid.empty(); }
};

/// Paths by key. Keys at the top have none.
using KeyPaths = std::map<std::string, KeyPath>;

/// A rank's leaves. Keys are unique among tensors and unique among objects.
struct StateDict {
  std::vector<TensorLeaf> tensors;
  std::vector<ObjectLeaf> objects;
  /// A dict that is the same on all ranks, or the Bytes that torch.save wrote of it. It is written
  /// once. None: nothing of the kind is saved.
  Value common = Dict{};
  /// Where keys belong in the nested state dict of a Python job.
  KeyPaths paths = {};
};

/// Returns a key such as "rng_state/shard_0.1_2.4".
std::string object_key(const std::string& key, const Dims& coordinate, const Dims& grid);
/// Returns the key under which an object is stored.
std::string stored_key(const ObjectLeaf& leaf);
/// Returns the objects of a state by the keys under which they are stored.
std::map<std::string, const ObjectLeaf*> objects_by_key(const StateDict& state);
/// The parts of an object's key. parse_object_key() returns nothing for keys that do not have this
/// form. In older files, the coordinate can have one more dimension than the grid. The grid's size
/// in that last dimension is then unknown and set to -1.
struct ObjectKey {
  std::string key;
  Dims coordinate;
  Dims grid;
};
std::optional<ObjectKey> parse_object_key(std::string_view name);

}  // namespace reprise
