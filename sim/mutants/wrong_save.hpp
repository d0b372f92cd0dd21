#pragma once
// Wrong descriptions of shards in a save.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Describes shards of ceil(n / parts) as beginning at multiples of floor(n / parts).
void describe_by_floor(Policies& policies);

}  // namespace reprise::sim
