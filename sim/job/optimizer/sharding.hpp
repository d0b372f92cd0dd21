#pragma once
// Defines the ways to distribute the optimizer's state over the data-parallel ranks, and their keys
// in a checkpoint. The names are Megatron's.
//
//   fully_reshardable          boxes of the model's tensors: dp splits one dimension
//   fully_sharded_model_space  flattened ranges of the model's tensors: up to 2n-1 boxes each
//   dp_reshardable             ranges of flat buckets with many parameters and padding; the keys
//                              name bucket and model-parallel rank, so only dp may change
//   fsdp_dtensor               boxes as in fully_reshardable, also for the weights;
//                              keys end with the name of the slot

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace reprise::sim {

enum class Sharding : std::uint8_t {
  kFullyReshardable,
  kDpReshardable,
  kFullyShardedModelSpace,
  kFsdpDtensor,
};

std::span<const std::string_view> sharding_names();
std::string_view name_of(Sharding sharding);
/// Returns the sharding of that name. Throws UNSUPPORTED for Megatron's older shardings
/// (fully_sharded_bucket_space, dp_zero_gather_scatter), and USAGE with a suggestion for any other
/// name.
Sharding sharding_named(std::string_view name);

/// Name of the entry with the unpadded lengths of the buckets, in the objects of a bucket group.
inline constexpr std::string_view kUnpaddedSizes = "per_bucket_numel_unpadded";
/// Returns "<prefix>optimizer.distributed.dp_group_idx_<index>.".
std::string bucket_group_prefix(const std::string& prefix, std::int32_t index);

}  // namespace reprise::sim
