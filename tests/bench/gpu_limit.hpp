#pragma once
// Measures a GPU's speed limits, using code that does only what is measured.

#include <cstdint>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/base/bytes.hpp"

namespace reprise::bench {

/// Returns the sum of all 64-bit words of `a` and `b`, which are read in parallel. The sizes are
/// multiples of 16 bytes. Blocks until the sum is known.
std::uint64_t sum_of_two_on_device(CudaDevice& device, ByteSpan a, ByteSpan b);

}  // namespace reprise::bench
