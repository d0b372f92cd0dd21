#include "sim/job/optimizer/sharding.hpp"

#include <algorithm>

#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"fully_reshardable", "dp_reshardable",
                                                    "fully_sharded_model_space", "fsdp_dtensor"};
constexpr std::array<std::string_view, 2> kOlder = {"fully_sharded_bucket_space",
                                                    "dp_zero_gather_scatter"};

std::string_view slot_name(Slot slot) {
  constexpr std::array<std::string_view, 3> kSlotNames = {"fp32_param", "exp_avg", "exp_avg_sq"};
  return kSlotNames[static_cast<std::size_t>(slot)];
}

}  // namespace

std::span<const std::string_view> sharding_names() { return kNames; }

std::string_view name_of(Sharding sharding) { return kNames[static_cast<std::size_t>(sharding)]; }

Sharding sharding_named(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return static_cast<Sharding>(found - kNames.begin());
  const bool older = std::find(kOlder.begin(), kOlder.end(), name) != kOlder.end();
  const std::string near = closest(name, kNames);
  throw Error(older ? Code::kUnsupported : Code::kUsage,
              "optimizer sharding '" + std::string(name) + "' " +
                  (older ? "is an older one that this job can't read" : "is not known") +
                  (near.empty() || older ? "" : "; did you mean '" + near + "'?") +
                  ". Known: " + join(kNames, ", "));
}

std::string slot_key(Sharding sharding, Slot slot, const std::string& key) {
  const std::string name(slot_name(slot));
  return sharding == Sharding::kFsdpDtensor ? "optimizer.state." + key + "." + name
                                            : "optimizer.state." + name + "." + key;
}

std::string bucket_group_prefix(const std::string& prefix, std::int32_t index) {
  return prefix + "optimizer.distributed.dp_group_idx_" + std::to_string(index) + ".";
}

std::string bucket_key(const std::string& group_prefix, std::size_t bucket, Slot slot) {
  const std::string_view name = slot == Slot::kMaster ? "param" : slot_name(slot);
  return group_prefix + "gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).bucket_idx_" +
         std::to_string(bucket) + "." + std::string(name);
}

}  // namespace reprise::sim
