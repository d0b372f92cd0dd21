#include "sim/job/optimizer/slots.hpp"

#include <string_view>

namespace reprise::sim {
namespace {

std::string_view slot_name(Slot slot) {
  constexpr std::array<std::string_view, kSlots.size()> kSlotNames = {"fp32_param", "exp_avg",
                                                                      "exp_avg_sq"};
  return kSlotNames[static_cast<std::size_t>(slot)];
}

}  // namespace

std::string slot_key(Sharding sharding, Slot slot, const std::string& key) {
  const std::string name(slot_name(slot));
  return sharding == Sharding::kFsdpDtensor ? "optimizer.state." + key + "." + name
                                            : "optimizer.state." + name + "." + key;
}

std::string bucket_key(const std::string& group_prefix, std::size_t bucket, Slot slot) {
  const std::string_view name = slot == Slot::kMaster ? "param" : slot_name(slot);
  return group_prefix + "gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).bucket_idx_" +
         std::to_string(bucket) + "." + std::string(name);
}

}  // namespace reprise::sim
