#include "sim/job/optimizer/sharding.hpp"

#include <algorithm>
#include <array>

#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"fully_reshardable", "dp_reshardable",
                                                    "fully_sharded_model_space", "fsdp_dtensor"};
constexpr std::array<std::string_view, 2> kOlder = {"fully_sharded_bucket_space",
                                                    "dp_zero_gather_scatter"};

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

std::string bucket_group_prefix(const std::string& prefix, std::int32_t index) {
  return prefix + "optimizer.distributed.dp_group_idx_" + std::to_string(index) + ".";
}

}  // namespace reprise::sim
