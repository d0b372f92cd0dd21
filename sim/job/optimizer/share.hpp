#pragma once
// Computes which part of each local tensor's optimizer state a data-parallel rank keeps. All
// functions are pure.

#include <span>
#include <vector>

#include "reprise/mesh.hpp"
#include "sim/job/model/local_tensor.hpp"
#include "sim/job/optimizer/buckets.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::sim {

/// One rank's part of one parameter, as boxes of its local array. The rank's arena stores the boxes
/// one after another, from element `begin` on.
struct Share {
  std::vector<Box> boxes;
  std::int64_t begin = 0;
};

/// Rule by which ranks share the state.
struct ShareRule {
  Sharding sharding = Sharding::kFullyReshardable;
  std::size_t dim = 0;  ///< dimension to split; the last dimension if a tensor has fewer
  ChunkRule slice = ceil_chunk;
  BucketSizes buckets;
  std::vector<Bucket> (*layout)(std::span<const std::int64_t>, const BucketGroup&,
                                const BucketSizes&) = bucket_layout;
};

struct ShareTable {
  std::vector<std::vector<Share>> shares;  ///< indexed by parameter, then by rank of the group
  std::vector<std::int64_t> arena;         ///< number of elements that each rank of the group keeps
  std::vector<Bucket> buckets;             ///< set only for dp_reshardable
};

/// Computes the shares of all ranks. `group` is a mesh of only the sharding axes; its i-th member
/// is rank i of the sharing group. There are `instances` such groups, and each holds a copy of all
/// shares.
ShareTable share_out(std::span<const LocalTensor> tensors, const Mesh& group,
                     std::int32_t instances, const ShareRule& rule);

/// Returns the splits of `dim` along all axes of `group`, the slowest first; none for a tensor
/// without dimensions.
std::vector<Split> share_splits(const Dims& shape, std::size_t dim, const Mesh& group);

}  // namespace reprise::sim
