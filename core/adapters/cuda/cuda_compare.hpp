#pragma once
// Compares elements in GPU memory.

#include <cstddef>
#include <cstdint>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/geometry/compare.hpp"

namespace reprise {

/// Compares elements as compare_elements() does, but in memory that the device can reach. The
/// comparison runs after the work queued on the compute stream and reads the elements once. Blocks
/// until it is done. Throws UNSUPPORTED if built without CUDA.
Comparison compare_on_device(CudaDevice& device, DType dtype, const std::byte* left,
                             const std::byte* right, std::int64_t elements);

}  // namespace reprise
