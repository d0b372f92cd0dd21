#pragma once
// Joins the parts of a state.

#include <string>

#include "core/state/state_dict.hpp"

namespace reprise::sim {

/// Puts the prefix before the keys of all leaves.
void put_before(const std::string& prefix, StateDict& state);
/// Adds the leaves of `part` to `state`. Ignores the common state of `part`.
void append(StateDict& state, StateDict part);

}  // namespace reprise::sim
