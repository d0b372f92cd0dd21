#pragma once
// What a module's optimizer says of itself goes into sharded objects: common state is written by
// rank 0 alone, which need not own the module. As Megatron's MimoOptimizer has it:
//
//   {optimizer: {param_groups}, grad_scaler, param_state_sharding_type}
//       -> objects of shape (1,)   mimo.<m>.optimizer.mimo.<m><s>.param_groups
//                                  mimo.<m>.optimizer.mimo.<m><s>.grad_scaler
//                                  mimo.<m>.optimizer.mimo.<m><s>.param_state_sharding_type
//
// <s> is empty for the first optimizer of a chain, .1 and .2 for the next. The module's prefix
// comes before all of its keys afterwards; checkpoints from before there was one have the bare
// form. Under dp_reshardable groups and scaler are objects of the distributed optimizer already,
// and are not wrapped again: optimizer.distributed.dp_group_idx_<g>.optimizer and .grad_scaler.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/state/state_dict.hpp"
#include "sim/job/groups.hpp"
#include "sim/job/optimizer_entry.hpp"

namespace reprise::sim {

/// In the common state, by module and place in its chain, what of an entry is no object: nothing.
inline constexpr const char* kOptimizerOfModules = "optimizer";

/// Keys without the module's prefix.
std::string settings_key(std::string_view module, std::size_t chain, std::string_view part);

/// An optimizer of a module's chain.
struct ChainPlace {
  std::string module;
  std::size_t chain = 0;
  std::int32_t replica = 0;  ///< which copy of its objects this rank has
};

/// Takes the parts that are in `entry` out of it, and with them a wrapper that is left empty: it
/// would not survive a common state that another rank writes.
std::vector<ObjectLeaf> extract_entry(Dict& entry, const ChainPlace& place);

/// The same for the objects of a distributed optimizer under dp_reshardable: groups with their
/// wrapper, and scaler. `prefix` as of its buckets.
std::vector<ObjectLeaf> extract_distributed(Dict& entry, const std::string& prefix,
                                            std::int32_t replica);

/// Puts loaded objects back around what the common state had; a wrapper that is not there is made.
/// `objects` are those of one optimizer, without the module's prefix.
Value restore_entry(Value entry, std::span<const ObjectLeaf> objects);

/// (tp, pp, dp x cp) as one number: one rank of the module's has the main copy.
std::int32_t copy_of_module(const CheckpointGroups& groups, GlobalRank self);

}  // namespace reprise::sim
