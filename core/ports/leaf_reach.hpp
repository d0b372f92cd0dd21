#pragma once
// Refuses tensors that the device can't copy.

#include "core/state/state_dict.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// Throws UNSUPPORTED with the key of the first tensor that this rank holds elements of at an
/// address which the device can't reach, such as a CPU tensor in the state of an optimizer on a
/// GPU.
void require_reach(const Device& device, const StateDict& state);

}  // namespace reprise
