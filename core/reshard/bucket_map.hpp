#pragma once
// Finds out which parameter lies where in the buckets of Megatron's distributed optimizer
// (dp_reshardable). A checkpoint does not say it: a bucket is a flat tensor, and its chunks have
// the lengths of parameters, but no names. But the bucket of the slot `param` holds the parameters
// in float32 of which the weights in the same checkpoint are the rounded ones. So a parameter is
// the weight that has its bits, all of them.
//
//   bucket     [ linear_fc2 .... | pad | linear_fc1 ......... | pad | norm | ... ]
//              each parameter of one rank, in the reverse order of the model, from a multiple of 64

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/plan/layout_boxes.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// The parts of a key that a distributed optimizer has for one group of replicas, such as
/// "chained_0.optimizer.distributed.dp_group_idx_1.per_bucket_numel".
struct GroupKey {
  std::string prefix;      ///< "" or "chained_0."
  std::int64_t chain = 0;  ///< the number in the prefix
  std::int64_t group = 0;  ///< dp_group_idx
  std::string name;        ///< what follows
};
/// Returns nothing if the key is no such key. Throws UNSUPPORTED for another prefix, such as that
/// of a module.
std::optional<GroupKey> parse_group_key(std::string_view key);

/// The parts of a bucket's key, such as
/// "chained_0.optimizer.distributed.dp_group_idx_1.gbuf_idx_0.dtype_(...).bucket_idx_2.exp_avg".
struct BucketKey {
  GroupKey of_group;
  std::string bucket;  ///< the key without the slot and its dot
  std::string slot;    ///< such as "exp_avg"
};
std::optional<BucketKey> parse_bucket_key(std::string_view key);

/// A parameter as one rank of tensor and pipeline parallelism has it.
struct BucketParameter {
  std::uint32_t weight = 0;  ///< index of the weight in Catalog::tensors
  /// The parts of the weight, in the order in which they lie in the parameter: one, or the two
  /// halves of a gated layer.
  std::vector<Box> boxes;
  std::string bucket;      ///< BucketKey::bucket
  std::string prefix;      ///< BucketKey::prefix
  std::int64_t begin = 0;  ///< first element in the bucket
};

/// Returns the parameters of all buckets. `boxes` are those of the layout that saved, `parts` its
/// sizes. Reads the weights and their buckets. Throws UNSUPPORTED, with the bucket's key, if a part
/// of a bucket is no weight of its rank, or if several weights have the same bits and the order of
/// the model does not tell them apart, or not all of them have state; CHECKSUM if a flipped
/// bit is why no weight fits.
std::vector<BucketParameter> map_buckets(Checkpoint& checkpoint, const LayoutBoxes& boxes,
                                         const LayoutParts& parts, bool virtual_stages,
                                         Device& device);

}  // namespace reprise
