#pragma once
// Stores a module's optimizer settings as sharded objects, because rank 0 alone writes the common
// state and may have no part of the module. The form is that of Megatron's MimoOptimizer:
//
//   {optimizer: {param_groups}, grad_scaler, param_state_sharding_type}
//       -> objects of shape (1,)   mimo.<m>.optimizer.mimo.<m><s>.param_groups
//                                  mimo.<m>.optimizer.mimo.<m><s>.grad_scaler
//                                  mimo.<m>.optimizer.mimo.<m><s>.param_state_sharding_type
//
// <s> is empty for the first optimizer of a chain, .1 for the second and .2 for the third. The
// module's prefix is added to all these keys later. Old checkpoints have bare keys, without this
// prefix. Under dp_reshardable, the groups and the scaler are already objects of the distributed
// optimizer and are not wrapped again. Their keys are
// optimizer.distributed.dp_group_idx_<g>.optimizer and .grad_scaler.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/state/state_dict.hpp"
#include "sim/job/groups/groups.hpp"
#include "sim/job/optimizer/optimizer_entry.hpp"

namespace reprise::sim {

/// Key of an entry in the common state. This entry holds all parts of optimizers that are not
/// stored as objects, by module and by index in the module's chain.
inline constexpr const char* kOptimizerOfModules = "optimizer";

/// Returns the key without the module's prefix.
std::string settings_key(std::string_view module, std::size_t chain, std::string_view part);

/// Identifies an optimizer by its module and its index in the module's chain.
struct ChainPlace {
  std::string module;
  std::size_t chain = 0;
  std::int32_t replica = 0;  ///< index of this rank's copy of the optimizer's objects
};

/// Moves the parts of an optimizer's `entry` into objects. If this leaves the wrapper of the
/// parameter groups empty, removes the wrapper, too. Readers must not depend on the wrapper,
/// because the written common state can come from another rank. A load creates the wrapper again.
std::vector<ObjectLeaf> extract_entry(Dict& entry, const ChainPlace& place);

/// Under dp_reshardable, moves the parts of an optimizer's `entry` into objects: the groups with
/// their wrapper, and the scaler. `prefix` is the prefix of the optimizer's buckets.
std::vector<ObjectLeaf> extract_distributed(Dict& entry, const std::string& prefix,
                                            std::int32_t replica);

/// Adds loaded objects to `entry`, an optimizer's entry in the common state, and returns the entry.
/// Creates the wrapper if it is missing. `objects` are those of one optimizer, without the module's
/// prefix.
Value restore_entry(Value entry, std::span<const ObjectLeaf> objects);

/// Computes a copy index from the coordinates (tp, pp, dp x cp). It is 0 only on the rank that is
/// first in all three groups; this rank has the main copy.
std::int32_t copy_of_module(const CheckpointGroups& groups, GlobalRank self);

}  // namespace reprise::sim
