#include "sim/job/optimizer/slots.hpp"

#include <string_view>
#include <utility>

namespace reprise::sim {
namespace {

std::string_view slot_name(Slot slot) {
  constexpr std::array<std::string_view, kSlots.size()> kSlotNames = {"fp32_param", "exp_avg",
                                                                      "exp_avg_sq"};
  return kSlotNames[static_cast<std::size_t>(slot)];
}

}  // namespace

std::string slot_key(Sharding sharding, Slot slot, const std::string& key) {
  constexpr std::string_view kState = "optimizer.state.";
  std::string_view first = slot_name(slot);
  std::string_view second = key;
  if (sharding == Sharding::kFsdpDtensor) std::swap(first, second);
  std::string all;
  all.reserve(kState.size() + first.size() + 1 + second.size());
  return all.append(kState).append(first).append(1, '.').append(second);
}

std::string bucket_key(const std::string& group_prefix, std::size_t bucket, Slot slot) {
  const std::string_view name = slot == Slot::kMaster ? "param" : slot_name(slot);
  return group_prefix + "gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).bucket_idx_" +
         std::to_string(bucket) + "." + std::string(name);
}

}  // namespace reprise::sim
