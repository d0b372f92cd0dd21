#pragma once
// Counts the allocations of this executable in operator new.

#include <cstddef>

namespace reprise::test {

/// False under a sanitizer, which has its own operator new.
bool allocations_counted();
/// Returns the number of bytes that are currently allocated.
std::size_t allocated_bytes();
/// Returns the highest number of bytes that were allocated at the same time since the last call.
std::size_t take_allocated_peak();

}  // namespace reprise::test
