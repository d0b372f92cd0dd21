#pragma once
// Wrong decisions of a save: how shards are described.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Shards of ceil(n / parts) are described as beginning at multiples of floor(n / parts).
void describe_by_floor(Policies& policies);

}  // namespace reprise::sim
