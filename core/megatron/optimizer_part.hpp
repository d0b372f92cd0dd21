#pragma once
// Checks the values that an optimizer stores in addition to its tensors; each value is checked on
// its own. Pure. Megatron saves a sharded object as a one-item list; the bare value is accepted,
// too.

#include <cstdint>
#include <optional>
#include <string>

#include "core/megatron/module_key.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Returns a message about what is wrong with a value stored as `part`; empty if nothing is wrong.
/// Expected values:
///
///   param_groups   a list of dicts, or the dict {param_groups: [...]} that a distributed optimizer
///                  stores. A load matches groups by the entries wd_mult, lr_mult,
///                  is_expert_parallel and is_decoupled_lr. Any two groups must differ in at least
///                  one of them. Groups without any of these entries are matched by position.
///   grad_scaler    a dict
///   param_state_sharding_type   a string
std::string complaint_about(ModulePart part, const Value& value);

/// Returns the name of a sharding type; nothing if the value is not a sharding type.
std::optional<std::string> sharding_type_of(const Value& value);

/// How optimizer state is laid out under a sharding type.
enum class StateForm : std::uint8_t {
  kBuckets,  ///< the distributed optimizer's internal buffers
  kTensors,  ///< one tensor per parameter, flattened or not
  kRefused,  ///< written by older releases; recognised, but no load accepts it
  kUnknown,
};
StateForm form_of_sharding_type(const std::string& type);

}  // namespace reprise
