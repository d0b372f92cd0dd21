#pragma once
// Encodes and decodes an optimizer's entry in a checkpoint, in Megatron's form. The entry holds
// everything except the optimizer's tensors:
//
//   {optimizer: {param_groups: [{params: [], lr, ..., step}, ...]},
//    grad_scaler: {scale, growth_tracker, growth_interval}, param_state_sharding_type}
//
// Also matches stored parameter groups with those of a running optimizer.

#include <string>

#include "reprise/value.hpp"
#include "sim/job/model/progress.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::sim {

inline constexpr const char* kWrapper = "optimizer";
inline constexpr const char* kParamGroups = "param_groups";
inline constexpr const char* kGradScaler = "grad_scaler";
inline constexpr const char* kShardingType = "param_state_sharding_type";

struct OptimizerEntry {
  OptimizerSettings settings;
  Sharding sharding = Sharding::kFullyReshardable;

  friend bool operator==(const OptimizerEntry&, const OptimizerEntry&) = default;
};

Value encode(const OptimizerEntry& entry);
/// Throws NOT_STORED if an entry is missing or has another type, and WRAPPER_MISSING if the groups
/// have no wrapper. For an unknown sharding, throws the same error as sharding_named(). `path` is
/// for messages.
OptimizerEntry decode_optimizer(const Value& value, const std::string& path);

/// Returns the groups without their `params`, which are indices in this rank's memory.
std::vector<GroupSettings> without_params(std::vector<GroupSettings> groups);

/// Sorts groups by their identifiers. Jobs that order their groups differently can then be
/// compared.
void put_in_order(std::vector<GroupSettings>& groups);

struct GroupMatch {
  const std::vector<GroupSettings>& own;
  const std::vector<GroupSettings>& stored;
  std::string who;  ///< owner, such as "module vision"; used in messages
};

/// Matches stored groups with the job's own groups by their identifiers. Returns the stored
/// settings in the order of the job's groups; each result has the parameters of the job's group. A
/// group is identified by its multipliers and by whether it holds experts, as in Megatron's
/// param_group_identifier_keys. Throws UNSUPPORTED, naming the owner, if the number of groups
/// differs or a group of the job is not stored. Throws GROUP_COLLISION if two groups have the same
/// identifiers.
std::vector<GroupSettings> matched_by_identifier(const GroupMatch& match);

}  // namespace reprise::sim
