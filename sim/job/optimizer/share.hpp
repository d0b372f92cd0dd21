#pragma once
// Computes the part of each local tensor's optimizer state that a data-parallel rank keeps. Pure.

#include <span>
#include <vector>

#include "reprise/mesh.hpp"
#include "sim/job/model/local_tensor.hpp"
#include "sim/job/optimizer/buckets.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::sim {

/// One rank's part of one parameter: boxes of its local array, one after another in that rank's
/// arena from element `begin` on.
struct Share {
  std::vector<Box> boxes;
  std::int64_t begin = 0;
};

/// Rule by which state is shared.
struct ShareRule {
  Sharding sharding = Sharding::kFullyReshardable;
  std::size_t dim = 0;  ///< dimension that cuts boxes; a tensor with fewer dimensions uses its last
  ChunkRule slice = ceil_chunk;
  BucketSizes buckets;
  std::vector<Bucket> (*layout)(std::span<const std::int64_t>, const BucketGroup&,
                                const BucketSizes&) = bucket_layout;
};

struct ShareTable {
  std::vector<std::vector<Share>> shares;  ///< indexed by parameter, then by rank of the group
  std::vector<std::int64_t> arena;         ///< number of elements that each rank of the group keeps
  std::vector<Bucket> buckets;             ///< for dp_reshardable
};

/// `group` is a mesh of only the sharding axes, whose i-th member is rank i of the group that
/// shares; `instances` is the number of such groups, which hold copies.
ShareTable share_out(std::span<const LocalTensor> tensors, const Mesh& group,
                     std::int32_t instances, const ShareRule& rule);

/// Returns the splits of `dim` along all axes of `group`, the slowest first; none for a tensor
/// without dimensions.
std::vector<Split> share_splits(const Dims& shape, std::size_t dim, const Mesh& group);

}  // namespace reprise::sim
