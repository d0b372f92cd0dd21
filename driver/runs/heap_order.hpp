#pragma once
// Gives the memory of this process another order, for the second run of a comparison.

#include <cstdint>

namespace reprise::driver {

/// Fills the heap with blocks and frees half of them in an order that the seed draws. Later blocks
/// of this thread come from the holes, so the order of their addresses is another one than in a
/// fresh process. Code that lets addresses decide then takes another course. The rest of the blocks
/// stays until the process ends.
void shake_heap(std::uint64_t seed);

}  // namespace reprise::driver
