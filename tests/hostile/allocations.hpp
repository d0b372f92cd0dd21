#pragma once
// What this executable allocates: operator new counts.

#include <cstddef>

namespace reprise::test {

/// False under a sanitizer, which has an operator new of its own.
bool allocations_counted();
/// Bytes that are allocated now.
std::size_t allocated_bytes();
/// Most bytes at once since the last call.
std::size_t take_allocated_peak();

}  // namespace reprise::test
