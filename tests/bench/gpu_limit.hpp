#pragma once
// Measures speed limits of a GPU with code that does nothing else.

#include <cstdint>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/base/bytes.hpp"

namespace reprise::bench {

/// Returns the sum of all 64-bit words of `a` and `b`, which are read in parallel. The sizes are
/// multiples of 16 bytes. Blocks until the sum is known.
std::uint64_t sum_of_two_on_device(CudaDevice& device, ByteSpan a, ByteSpan b);

}  // namespace reprise::bench
