#pragma once
// What an optimizer leaves in a checkpoint beside its tensors, as Megatron lays it out:
//
//   {optimizer: {param_groups: [{params: [], lr, ..., step}, ...]},
//    grad_scaler: {scale, growth_tracker, growth_interval}, param_state_sharding_type}
//
// and which of a running optimizer's groups a stored one is.

#include <string>

#include "reprise/value.hpp"
#include "sim/job/progress.hpp"

namespace reprise::sim {

inline constexpr const char* kWrapper = "optimizer";
inline constexpr const char* kParamGroups = "param_groups";
inline constexpr const char* kGradScaler = "grad_scaler";
inline constexpr const char* kShardingType = "param_state_sharding_type";

struct OptimizerEntry {
  OptimizerSettings settings;
  std::string sharding;

  friend bool operator==(const OptimizerEntry&, const OptimizerEntry&) = default;
};

Value encode(const OptimizerEntry& entry);
/// NOT_STORED as Entries, WRAPPER_MISSING if nothing stands around the groups. `path` is
/// for messages.
OptimizerEntry decode_optimizer(const Value& value, const std::string& path);

/// What is saved of groups: all but their parameters, which are places in this rank's memory.
std::vector<GroupSettings> without_params(std::vector<GroupSettings> groups);

/// By what groups are known, for jobs to be compared that have them in another order.
void put_in_order(std::vector<GroupSettings>& groups);

struct GroupMatch {
  const std::vector<GroupSettings>& own;
  const std::vector<GroupSettings>& stored;
  std::string who;  ///< whose: "module vision", for messages
};

/// The stored settings in the order of the job's own groups, with the own parameters. A group is
/// known by its multipliers and by whether it is of experts, as the field's
/// param_group_identifier_keys. UNSUPPORTED naming module and counts for another number of groups
/// or one that the job has not, GROUP_COLLISION if two groups are known by the same.
std::vector<GroupSettings> matched_by_identifier(const GroupMatch& match);

}  // namespace reprise::sim
