#pragma once
// Parts of the optimizer's state, by their keys in a checkpoint of any sharding.

#include <string_view>

#include "core/state/state_dict.hpp"
#include "sim/job/sharding.hpp"

namespace reprise::sim {

/// "optimizer.state.exp_avg.<key>", "optimizer.state.<key>.exp_avg", "<...>.bucket_idx_0.exp_avg".
bool holds_slot(std::string_view key, Slot slot);

StateDict without_slot(StateDict state, Slot slot);
StateDict without_moments(StateDict state);

/// The settings of each parameter group in the common state; none if there are none.
std::vector<Dict*> parameter_groups(StateDict& state);

}  // namespace reprise::sim
