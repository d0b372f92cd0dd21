#pragma once
// Finds the box of a tensor that one member of a mesh holds, from what torch's DTensor says of it:
// a placement for each dimension of the mesh.
//
//   placements   [Shard(0), Shard(1)]                dim 0 is cut by mesh dimension 0, dim 1 by 1
//                [Shard(0), Shard(0)]                dim 0 is cut by 0, and each part by 1
//                [_StridedShard(0, split_factor=2), Shard(0)]   the other way round: first by 1, of
//                                                    size 2, then by 0, as FSDP2 cuts what tensor
//                                                    parallelism has cut
//                Replicate()                         cuts nothing

#include <cstdint>
#include <vector>

#include "core/geometry/box.hpp"

namespace reprise {

struct MeshPlacement {
  enum class Kind : std::uint8_t { kReplicate, kShard, kStridedShard };
  Kind kind = Kind::kReplicate;
  std::int64_t dim = 0;           ///< of the tensor; negative ones count from the end
  std::int64_t split_factor = 1;  ///< only for kStridedShard

  friend bool operator==(const MeshPlacement&, const MeshPlacement&) = default;
};

struct MeshSharding {
  std::vector<std::int64_t> shape;        ///< of the whole tensor
  std::vector<std::int64_t> mesh;         ///< extents of the mesh
  std::vector<MeshPlacement> placements;  ///< one for each dimension of the mesh

  friend bool operator==(const MeshSharding&, const MeshSharding&) = default;
};

/// The part of a tensor that a rank holds.
struct ShardPlace {
  Dims shape;  ///< of the whole tensor
  Box box;

  friend bool operator==(const ShardPlace&, const ShardPlace&) = default;
};

/// Returns the box of the member at these coordinates, cut by the rule of torch.chunk. Throws
/// UNSUPPORTED for more than kMaxNdim dimensions and for a split factor that is not the product of
/// the sizes of later mesh dimensions that cut the same dimension, and TORN_FILE for numbers that
/// contradict each other.
ShardPlace place_of_member(const MeshSharding& sharding,
                           const std::vector<std::int64_t>& coordinates);

}  // namespace reprise
