#pragma once
// Lists the values that the optimizer keeps for each element, and defines their keys in a
// checkpoint.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/job/optimizer/sharding.hpp"

namespace reprise::sim {

/// Values that the optimizer keeps for each element. The update that uses them is in
/// sim/job/model/element_work.hpp.
enum class Slot : std::uint8_t { kMaster, kExpAvg, kExpAvgSq };
inline constexpr std::array kSlots = {Slot::kMaster, Slot::kExpAvg, Slot::kExpAvgSq};

/// Returns the key of a slot if the parameter's state is kept tensor by tensor:
/// "optimizer.state.exp_avg.<key>"; under fsdp_dtensor "optimizer.state.<key>.exp_avg".
std::string slot_key(Sharding sharding, Slot slot, const std::string& key);
/// Returns the key of a bucket's slot: "optimizer.distributed.dp_group_idx_3.gbuf_idx_0.dtype_(
/// torch.bfloat16, torch.float32).bucket_idx_1.exp_avg".
std::string bucket_key(const std::string& group_prefix, std::size_t bucket, Slot slot);

}  // namespace reprise::sim
