#pragma once
// What a GPU can do at best, as code that does nothing else.

#include <cstdint>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/base/bytes.hpp"

namespace reprise::bench {

/// The sum of the 64-bit words of both, read side by side; sizes are multiples of 16 bytes. Blocks.
std::uint64_t sum_of_two_on_device(CudaDevice& device, ByteSpan a, ByteSpan b);

}  // namespace reprise::bench
