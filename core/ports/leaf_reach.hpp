#pragma once
// Refuses tensors that the device can't copy, or that nothing can be copied to.

#include "core/state/state_dict.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// Throws UNSUPPORTED with the key of the first tensor that this rank holds elements of at an
/// address which the device can't reach, such as a CPU tensor in the state of an optimizer on a
/// GPU.
void require_reach(const Device& device, const StateDict& state);

/// Throws USAGE with the key of the first tensor into which nothing can be loaded, because two of
/// its elements may share memory, such as those of an expanded view.
void require_distinct_elements(const StateDict& state);

}  // namespace reprise
