#pragma once
// Values that an optimizer stores besides its tensors: what must be true of each by itself. Pure.
// Megatron saves a sharded object as a list of one; with and without it they are understood.

#include <cstdint>
#include <optional>
#include <string>

#include "core/state/module_key.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// What is wrong with a value that is stored as such a part, in words; empty if nothing is.
///
///   param_groups   a list of dicts, or the dict {param_groups: [...]} that a distributed optimizer
///                  stores. A load matches groups by (wd_mult, lr_mult, is_expert_parallel,
///                  is_decoupled_lr), so no two may have the same; groups without any of them are
///                  matched by place
///   grad_scaler    a dict
///   param_state_sharding_type   a text
std::string complaint_about(ModulePart part, const Value& value);

/// The text that a sharding type is; nothing if it is none.
std::optional<std::string> sharding_type_of(const Value& value);

/// How a sharding type lays the state out.
enum class StateForm : std::uint8_t {
  kBuckets,  ///< the distributed optimizer's own buffers
  kTensors,  ///< a tensor for each parameter, flattened or not
  kRefused,  ///< of older releases; recognised, and no load takes it
  kUnknown,
};
StateForm form_of_sharding_type(const std::string& type);

}  // namespace reprise
