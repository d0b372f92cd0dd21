#pragma once
// Wrong decisions of a save: how shards are described, when the tracker moves.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Shards of ceil(n / parts) are described as beginning at multiples of floor(n / parts).
void describe_by_floor(Policies& policies);

/// The tracker names the checkpoint before its payload stands in its place.
void tracker_before_payload(Policies& policies);

}  // namespace reprise::sim
