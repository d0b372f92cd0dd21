#pragma once
// Selects parts of the optimizer's state by their keys in a checkpoint of any sharding.

#include <string_view>

#include "core/state/state_dict.hpp"
#include "sim/job/optimizer/slots.hpp"

namespace reprise::sim {

/// True for keys such as "optimizer.state.exp_avg.<key>", "optimizer.state.<key>.exp_avg" and
/// "<...>.exp_avg".
bool holds_slot(std::string_view key, Slot slot);

StateDict without_slot(StateDict state, Slot slot);
StateDict without_moments(StateDict state);

/// Returns the settings of each parameter group in the common state; empty if there are none.
std::vector<Dict*> parameter_groups(StateDict& state);

}  // namespace reprise::sim
